//! With the feature `bpf`: compiles the BPF program with clang and writes its skeleton.

fn main() {
    #[cfg(feature = "bpf")]
    skeleton();
}

#[cfg(feature = "bpf")]
fn skeleton() {
    const SOURCE: &str = "src/arrivals/bpf/arrivals.bpf.c";
    println!("cargo:rerun-if-changed={SOURCE}");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("arrivals.skel.rs");
    let mut builder = libbpf_cargo::SkeletonBuilder::new();
    builder.source(SOURCE).clang_args(["-Wall", "-Werror"]);
    builder.build_and_generate(out).expect("the feature `bpf` needs clang (and the headers of libelf and zlib)");
}
