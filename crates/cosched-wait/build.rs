//! Builds libcosched_preload.so (preload/), which is C, and puts it beside the library that it loads. Where it cannot be built, the library itself is
//! preloaded, and a warning says so.

use std::path::Path;
use std::process::Command;

const NAME: &str = "libcosched_preload.so";

/// No C library, few relocations, two mappings. No floating-point registers: the caller's are in use.
const OPTIONS: [&str; 19] = [
    "-O2",
    "-fPIC",
    "-ffreestanding",
    "-fvisibility=hidden",
    "-mgeneral-regs-only",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-Wall",
    "-Wextra",
    "-shared",
    "-nostdlib",
    "-Wl,-init,cosched_start",
    "-Wl,-z,noseparate-code",
    "-Wl,-z,norelro",
    "-Wl,-z,defs",
    "-Wl,--hash-style=gnu",
    "-Wl,--build-id=none",
    "-Wl,-s",
    "-Wl,-soname,libcosched_preload.so",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Set where the linker provides an unwinder (tools/packages).
    println!("cargo:rustc-check-cfg=cfg(static_unwinder)");
    println!("cargo:rerun-if-changed=preload");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_OS") != "linux"
        || !["x86_64", "aarch64"].contains(&&*variable("CARGO_CFG_TARGET_ARCH"))
    {
        return;
    }
    // Cargo's output directory, three levels above the one of this script.
    let own = variable("OUT_DIR");
    let beside = Path::new(&own).ancestors().nth(3).expect("a folder of cargo").join(NAME);
    println!("cargo:rerun-if-changed={}", beside.display());
    // Not written in place: running programs may have it mapped.
    let new = Path::new(&own).join(NAME);
    let built = compiler().arg("-o").arg(&new).arg("preload/preload.c").status();
    let why = match built {
        Ok(status) if status.success() => put(&new, &beside).err().map(|error| error.to_string()),
        Ok(status) => Some(format!("the C compiler ended with {status}")),
        Err(error) => Some(format!("the C compiler: {error}")),
    };
    if let Some(why) = why {
        println!("cargo:warning={NAME} is not built ({why}); programs will have the whole wait library preloaded");
    }
}

/// Copies it with the time of its source: cargo treats a file that is newer than this script's start as changed by another program.
fn put(new: &Path, beside: &Path) -> std::io::Result<()> {
    let source = std::fs::metadata("preload/preload.c")?.modified()?;
    std::fs::File::options().write(true).open(new)?.set_modified(source)?;
    std::fs::rename(new, beside)
}

fn compiler() -> Command {
    let mut build = cc::Build::new();
    build.no_default_flags(true).warnings(false);
    // gcc turns loops into calls of the C library.
    build.flag_if_supported("-fno-tree-loop-distribute-patterns");
    let mut command = build.get_compiler().to_command();
    command.args(OPTIONS);
    command
}
