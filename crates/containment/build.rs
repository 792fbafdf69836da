//! Compiles the guardian: a program without std and libc, embedded into the library as bytes.
//!
//! Cargo cannot hand one package's binary to another's library, so the compiler is called here. It takes nothing but
//! rustc and the linker that the crate itself is linked with.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for source in ["guardian", "shared", "sys/linux/bare"] {
        println!("cargo:rerun-if-changed=src/{source}");
    }
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") != "linux" {
        return;
    }
    assert!(
        target("ARCH") == "x86_64",
        "moored-containment: no guardian for `{}` yet; see src/sys/linux/bare/x86_64.rs for what one takes",
        target("ARCH")
    );
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("guardian");
    compile(&out);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the compiler is no server; it ends by itself and is waited for"
)]
fn compile(out: &Path) {
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let mut rustc = Command::new(variable("RUSTC"));
    rustc
        .args(["src/guardian/main.rs", "--crate-name", "moored_guardian", "--edition", "2024"])
        .args(["--crate-type", "bin", "--target", &variable("TARGET"), "-o"])
        .arg(out)
        // Small, without unwinding tables, at a fixed address: fewer pages to hold.
        .args(["-C", "opt-level=s", "-C", "panic=abort", "-C", "codegen-units=1", "-C", "strip=symbols"])
        .args(["-C", "relocation-model=static", "-C", "force-unwind-tables=no", "-C", "debug-assertions=no"])
        .args(["-C", "link-arg=-nostartfiles", "-C", "link-arg=-nostdlib", "-C", "link-arg=-static"])
        .args(["-C", "link-arg=-Wl,--build-id=none,--gc-sections,-z,noexecstack,-z,noseparate-code"]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = std::ffi::OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    let compiled =
        rustc.status().unwrap_or_else(|error| panic!("failed to run rustc for the guardian: {error}"));
    assert!(compiled.success(), "failed to compile the guardian");
}
