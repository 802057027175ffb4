//! Sets the library's soname for the dynamic linker: programs that were linked against version 0 load
//! version 0.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcosched.so.{}", std::env!("CARGO_PKG_VERSION_MAJOR"));
}
