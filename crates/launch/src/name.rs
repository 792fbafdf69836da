//! What a server is called when no name is given: the program that is really executed, without what all of them share.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::mask::{MASK, masked};

/// A name for the server behind this command: the operand of `npx`, `uvx`, `node`, `python`, `docker run` and the like,
/// else the program, without folder, version and extension.
///
/// ```
/// use moored_launch::server_name;
///
/// let name = |words: &str| server_name(&words.split(' ').map(Into::into).collect::<Vec<_>>());
/// assert_eq!(name("npx -y @upstash/context7-mcp@1.2"), "context7-mcp");
/// assert_eq!(name("/usr/bin/python3 -m mcp_server_time --local"), "mcp_server_time");
/// assert_eq!(name("node --inspect /opt/srv/index.js"), "index");
/// assert_eq!(name("docker run -i --rm -e TOKEN mcp/github"), "github");
/// assert_eq!(name("sh -c something"), "sh");
/// assert_eq!(name("npx --token abc srv"), "srv");
/// ```
#[must_use]
pub fn server_name(command: &[OsString]) -> String {
    // A name is shown everywhere, and is part of paths: it is made of words that hold no secret.
    let command = masked(command);
    let Some((program, args)) = command.split_first() else { return String::new() };
    let args: Vec<&str> = args.iter().map(String::as_str).filter(|arg| *arg != MASK).collect();
    let program = base(OsStr::new(program));
    let operand = match program.as_str() {
        "npx" | "bunx" | "pnpx" | "uvx" | "pipx" => {
            operand(&args, &["-p", "--package", "--from", "-c", "--with"])
        }
        "npm" | "pnpm" | "yarn" | "bun" | "uv" | "deno" => after(&args, &["exec", "dlx", "run", "x", "tool"]),
        "node" => operand(&args, &["-r", "--require", "--import", "--loader"]),
        "docker" | "podman" | "nerdctl" => after_run(&args),
        name if name.starts_with("python") => python(&args),
        _ => None,
    };
    operand.map_or(program, |operand| base(OsStr::new(operand)))
}

/// The last part of a path or a package's name, without version and extension.
fn base(path: &OsStr) -> String {
    let name = Path::new(path).file_name().unwrap_or(path).to_string_lossy();
    let name = name.split(['@', '=', ':']).next().filter(|name| !name.is_empty()).unwrap_or(&name);
    let script = [".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".exe"];
    let name = script.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    name.to_owned()
}

/// The first word that is no option and no option's value.
fn operand<'a>(args: &[&'a str], with_value: &[&str]) -> Option<&'a str> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if with_value.contains(arg) {
            args.next();
        } else if !arg.starts_with('-') {
            return Some(arg);
        }
    }
    None
}

fn after<'a>(args: &[&'a str], verbs: &[&str]) -> Option<&'a str> {
    let begin = args.iter().position(|arg| !verbs.contains(arg) && !arg.starts_with('-'))?;
    args.get(begin).copied()
}

fn python<'a>(args: &[&'a str]) -> Option<&'a str> {
    match args.iter().position(|arg| *arg == "-m") {
        Some(at) => args.get(at + 1).copied(),
        None => operand(args, &["-X", "-W"]),
    }
}

/// The image of `docker run`: its options with a value of their own are those that people use with servers.
fn after_run<'a>(args: &[&'a str]) -> Option<&'a str> {
    let run = args.iter().position(|arg| *arg == "run")?;
    let with_value = [
        "-e",
        "--env",
        "-v",
        "--volume",
        "--mount",
        "-p",
        "--publish",
        "--name",
        "--network",
        "--net",
        "-w",
        "--workdir",
        "-u",
        "--user",
        "--entrypoint",
        "--platform",
        "--env-file",
        "-l",
        "--label",
        "--memory",
        "-m",
        "--cpus",
        "--add-host",
        "--cidfile",
        "--pull",
        "-h",
        "--hostname",
    ];
    operand(&args[run + 1..], &with_value)
}
