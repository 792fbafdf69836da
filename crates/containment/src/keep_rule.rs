//! Whether a process runs a program that is meant to live on.
//!
//! A rule is a program: a path, which must be the executable's own, or a name, which must be the last part of it. A
//! script is known by its own path or name rather than its interpreter's: xdg-open is `/bin/sh` to the kernel.
//!
//! Compiled twice, into the library and into the guardian: both read `/proc` in their own way, and judge in this one.

/// What is known of a process.
pub(crate) struct Program<'a> {
    /// Its executable; `None` if we may not look, which some programs see to (ssh-agent).
    pub(crate) exe: Option<&'a [u8]>,
    /// The kernel's short name for it.
    pub(crate) name: &'a [u8],
    /// The beginning of its command line, with a NUL after each argument.
    pub(crate) args: &'a [u8],
}

/// The kernel cuts names after so many bytes.
const NAME_LENGTH: usize = 15;

/// Programs that are somebody else: what they run is the file named in their arguments.
const INTERPRETERS: [&[u8]; 14] = [
    b"sh", b"bash", b"dash", b"zsh", b"ksh", b"busybox", b"node", b"nodejs", b"deno", b"bun", b"python",
    b"python3", b"perl", b"ruby",
];

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// Whether the rule means that process.
pub(crate) fn matches(rule: &[u8], program: &Program<'_>) -> bool {
    let is_path = rule.contains(&b'/');
    let named = |path: &[u8]| if is_path { path == rule } else { last_part(path) == rule };
    let name = program.name.trim_ascii_end();
    let name_fits = name == last_part(rule).get(..NAME_LENGTH).unwrap_or(last_part(rule));
    let Some(exe) = program.exe else {
        // Could not look: in doubt it is kept.
        return name_fits;
    };
    // A program that was replaced on disk while it runs is still that program.
    let exe = exe.strip_suffix(b" (deleted)").unwrap_or(exe);
    named(exe)
        || (name_fits || is_interpreter(exe)) && program.args.split(|b| *b == 0).skip(1).take(2).any(named)
}

fn is_interpreter(exe: &[u8]) -> bool {
    let name = last_part(exe);
    // python3.11 is python3.
    let stem = name.split(|b| *b == b'.').next().unwrap_or(name);
    INTERPRETERS.contains(&stem)
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
    fn what_may_not_be_looked_at_is_kept_by_its_short_name() {
        let agent = Program { exe: None, name: b"ssh-agent\n", args: b"" };
        assert!(
            matches(b"ssh-agent", &agent)
                && matches(b"/usr/bin/ssh-agent", &agent)
                && !matches(b"ssh", &agent)
        );
    }

    #[test]
    fn a_program_that_was_replaced_on_disk_is_still_that_program() {
        assert!(matches(b"adb", &program("/opt/adb (deleted)", "adb\n", "adb\0")));
    }
}
