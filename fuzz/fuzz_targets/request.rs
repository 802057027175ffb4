#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| strangers::request(data));

#[allow(dead_code)]
#[path = "../src/strangers.rs"]
mod strangers;
