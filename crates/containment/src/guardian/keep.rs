//! What is meant to live on: reading what `keep_rule` judges.

use crate::bare::call::{self, Errno};
use crate::shared::keep_rule::{self, Program};
use crate::proc;
use crate::session::List;

/// Whether the process runs one of the kept programs.
pub(crate) fn matches(rules: List, pid: i32) -> bool {
    if rules.count == 0 {
        return false;
    }
    let (mut exe, mut name, mut args) = ([0_u8; 1024], [0_u8; 32], [0_u8; 1024]);
    // One call, and it opens no file: of most processes it tells all.
    let exe = match call::read_link(proc::path(pid, b"exe").as_path(), &mut exe) {
        Ok(exe) => Some(exe),
        Err(Errno::ACCES | Errno::PERM) => None,
        // It is about to be gone: it runs nothing any more.
        Err(_) => return false,
    };
    if !keep_rule::needs_arguments(exe) {
        let program = Program { exe, name: b"", args: b"" };
        return rules.iter().any(|rule| keep_rule::matches(rule.to_bytes(), &program));
    }
    let name = proc::read_file(proc::path(pid, b"comm").as_path(), &mut name).unwrap_or(b"");
    let args = proc::read_file(proc::path(pid, b"cmdline").as_path(), &mut args).unwrap_or(b"");
    let program = Program { exe, name, args };
    rules.iter().any(|rule| keep_rule::matches(rule.to_bytes(), &program))
}
