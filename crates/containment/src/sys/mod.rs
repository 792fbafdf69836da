//! The only room with `unsafe` and `cfg(target_os)`: what each operating system gives, under the same names.
//!
//! Callers hold no `cfg`. Linux is the first and so far the only one; another one is a folder beside `linux/` and a line
//! in the switch below.

#[cfg(not(target_os = "linux"))]
compile_error!("moored-containment runs on Linux so far; macOS and Windows are on the way");

#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod os;

pub(crate) use os::*;
