//! The decisions of cosched, without input or output: plain data in, plain data out.
#![no_std]
extern crate alloc;
