//! Whether a process runs a program that is meant to live on.
//!
//! A rule is a program: a path, which must be the executable's own, or a name, which must be the last part of it. A
//! script is known by its own path or name rather than its interpreter's: xdg-open is `/bin/sh` to the kernel.
//!
//! Compiled twice, into the library and into the guardian: both read `/proc` in their own way, and judge in this one.

use super::interpreters::{is_interpreter, last_part};

/// What is known of a process.
pub(crate) struct Program<'a> {
    /// Its executable; `None` if we may not look, which some programs see to (ssh-agent).
    pub(crate) exe: Option<&'a [u8]>,
    /// The kernel's short name for it.
    pub(crate) name: &'a [u8],
    /// The beginning of its command line, with a NUL after each argument.
    pub(crate) args: &'a [u8],
}

/// The kernel cuts names after this many bytes.
const NAME_LENGTH: usize = 15;

/// Whether the rule means that process. A process can call itself what it likes (`PR_SET_NAME`), so its short name counts
/// only where nothing better is to be had, and never alone.
pub(crate) fn matches(rule: &[u8], program: &Program<'_>) -> bool {
    let Some(exe) = program.exe else { return is_called(rule, program) };
    // A program that was replaced on disk while it runs is still that program.
    let exe = exe.strip_suffix(b" (deleted)").unwrap_or(exe);
    let is_path = rule.contains(&b'/');
    let named = |path: &[u8]| if is_path { path == rule } else { last_part(path) == rule };
    named(exe) || script(exe, program.args).is_some_and(named)
}

/// Whether the arguments have a say: of most programs the executable tells all.
pub(crate) fn needs_arguments(exe: Option<&[u8]>) -> bool {
    exe.is_none_or(|exe| is_interpreter(exe.strip_suffix(b" (deleted)").unwrap_or(exe)))
}

/// We may not look at the executable: both the kernel's short name and the name that it was started by must fit.
fn is_called(rule: &[u8], program: &Program<'_>) -> bool {
    let rule = last_part(rule);
    let started_as = program.args.split(|b| *b == 0).next().unwrap_or(b"");
    let short = rule.get(..NAME_LENGTH).unwrap_or(rule);
    program.name.trim_ascii_end() == short && last_part(started_as) == rule
}

/// What an interpreter runs: its first argument that is no option. What comes after that is the script's own.
fn script<'a>(exe: &[u8], args: &'a [u8]) -> Option<&'a [u8]> {
    if !is_interpreter(exe) {
        return None;
    }
    let mut args = args.split(|b| *b == 0);
    let started_as = last_part(args.next()?);
    let mut operands = args.filter(|arg| !arg.is_empty() && !arg.starts_with(b"-"));
    match operands.next()? {
        // `busybox sh FILE`, `deno run FILE`: the program's own word comes first.
        _ if started_as == b"busybox" => operands.next(),
        b"run" if matches!(last_part(exe), b"deno" | b"bun") => operands.next(),
        file => Some(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program<'a>(exe: &'a str, name: &'a str, args: &'a str) -> Program<'a> {
        Program { exe: Some(exe.as_bytes()), name: name.as_bytes(), args: args.as_bytes() }
    }

    #[test]
    fn a_name_is_the_last_part_of_the_executable() {
        let tmux = program("/usr/bin/tmux", "tmux: server\n", "tmux\0new\0");
        assert!(matches(b"tmux", &tmux) && matches(b"/usr/bin/tmux", &tmux));
        assert!(!matches(b"mux", &tmux) && !matches(b"/bin/tmux", &tmux) && !matches(b"new", &tmux));
    }

    #[test]
    fn a_script_is_known_by_its_own_name() {
        let open = program("/usr/bin/dash", "xdg-open\n", "/bin/sh\0/usr/bin/xdg-open\0https://x\0");
        assert!(matches(b"xdg-open", &open) && matches(b"/usr/bin/xdg-open", &open));
        let tool = program("/usr/bin/node", "node\n", "node\0/opt/tool\0");
        assert!(matches(b"tool", &tool) && matches(b"node", &tool));
        let editor = program("/usr/bin/vim", "vim\n", "vim\0xdg-open\0");
        assert!(!matches(b"xdg-open", &editor), "to name a file is not to run it");
    }

    #[test]
    fn what_is_named_in_a_scripts_own_arguments_is_not_run() {
        for (exe, args) in [
            ("/usr/bin/python3.11", "python3\0worker.py\0tmux\0"),
            ("/usr/bin/python3.11", "python3\0-c\0pass\0tmux\0"),
            ("/usr/bin/dash", "sh\0./w.sh\0tmux\0"),
            ("/opt/notkept", "./notkept\0tmux\0"),
        ] {
            assert!(!matches(b"tmux", &program(exe, "tmux\n", args)), "{args:?}");
        }
        for (exe, args) in [
            ("/usr/bin/python3.11", "python3\0-u\0/opt/tmux\0worker.py\0"),
            ("/bin/busybox", "busybox\0sh\0/opt/tmux\0"),
            ("/bin/busybox", "sh\0/opt/tmux\0"),
            ("/usr/bin/deno", "deno\0run\0-A\0/opt/tmux\0"),
        ] {
            assert!(matches(b"tmux", &program(exe, "x\n", args)), "{args:?}");
        }
    }

    #[test]
    fn what_may_not_be_looked_at_is_kept_by_what_it_is_called_twice() {
        let agent = Program { exe: None, name: b"ssh-agent\n", args: b"/usr/bin/ssh-agent\0-s\0" };
        assert!(
            matches(b"ssh-agent", &agent)
                && matches(b"/usr/bin/ssh-agent", &agent)
                && !matches(b"ssh", &agent)
        );
        let renamed = Program { args: b"./notkept\0ssh-agent\0", ..agent };
        assert!(!matches(b"ssh-agent", &renamed), "anybody can give himself a short name");
    }

    #[test]
    fn a_program_that_was_replaced_on_disk_is_still_that_program() {
        assert!(matches(b"adb", &program("/opt/adb (deleted)", "adb\n", "adb\0")));
    }
}
