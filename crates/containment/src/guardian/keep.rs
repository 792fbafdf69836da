//! What is meant to live on: processes that run a kept program, and what they started.
//!
//! A rule is a program: a path, which must be the executable's own, or a name, which must be the last part of it. A
//! script is known by its own name rather than its interpreter's: xdg-open is `/bin/sh` to the kernel.

use crate::bare::call;
use crate::proc;
use crate::session::List;

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// Whether the process runs one of the kept programs.
pub(crate) fn matches(rules: List, pid: i32) -> bool {
    if rules.count == 0 {
        return false;
    }
    let mut bytes = [0_u8; 1024];
    let Ok(exe) = call::read_link(proc::path(pid, b"exe").as_path(), &mut bytes) else { return false };
    // A program that was replaced on disk while it runs is still that program.
    let exe = exe.strip_suffix(b" (deleted)").unwrap_or(exe);
    rules.iter().map(|rule| rule.to_bytes()).any(|rule| {
        if rule.contains(&b'/') { rule == exe } else { rule == last_part(exe) || is_script(pid, rule) }
    })
}

/// Whether the process interprets a script of that name: the kernel named it so, and it is among the first operands.
fn is_script(pid: i32, rule: &[u8]) -> bool {
    const NAME_LENGTH: usize = 15;
    let mut name = [0_u8; 32];
    let Ok(name) = proc::read_file(proc::path(pid, b"comm").as_path(), &mut name) else { return false };
    if name.trim_ascii_end() != &rule[..rule.len().min(NAME_LENGTH)] {
        return false;
    }
    let mut args = [0_u8; 1024];
    let Ok(args) = proc::read_file(proc::path(pid, b"cmdline").as_path(), &mut args) else { return false };
    args.split(|b| *b == 0).skip(1).take(2).any(|arg| last_part(arg) == rule)
}
