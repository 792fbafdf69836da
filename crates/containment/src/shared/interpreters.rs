//! The one list of interpreters: programs that run the file which their arguments name.

const SHELLS: [&[u8]; 6] = [b"sh", b"bash", b"dash", b"zsh", b"ksh", b"busybox"];

const OTHERS: [&[u8]; 17] = [
    b"node", b"nodejs", b"deno", b"bun", b"python", b"python2", b"python3", b"perl", b"ruby", b"php", b"lua",
    b"awk", b"gawk", b"mawk", b"tclsh", b"Rscript", b"gjs",
];

/// The last part of a path.
pub(crate) fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

/// Without folder and version: `/usr/bin/python3.11` is `python3`.
fn stem(program: &[u8]) -> &[u8] {
    let name = last_part(program);
    name.split(|b| *b == b'.').next().unwrap_or(name)
}

pub(crate) fn is_shell(program: &[u8]) -> bool {
    SHELLS.contains(&stem(program))
}

pub(crate) fn is_interpreter(program: &[u8]) -> bool {
    is_shell(program) || OTHERS.contains(&stem(program))
}
