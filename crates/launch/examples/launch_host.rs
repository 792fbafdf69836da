//! Starts what its arguments describe and waits for its end, so that a test can look at what the server was given, as
//! any user. Each argument changes the description: `cwd=PATH`, `set=NAME=VALUE`, `remove=NAME`, `clear`,
//! `program=PATH`, `arg=TEXT`.

use std::process::ExitCode;

use moored_launch::Launch;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut launch = Launch::new("described", "");
    for word in std::env::args().skip(1) {
        let (what, value) = word.split_once('=').unwrap_or((&word, ""));
        match what {
            "cwd" => launch.cwd = Some(value.into()),
            "set" => {
                let (name, value) = value.split_once('=').ok_or("set=NAME=VALUE")?;
                launch.env.set(name, value);
            }
            "remove" => {
                launch.env.remove(value);
            }
            "clear" => {
                launch.env.clear();
            }
            "program" => launch.program = value.into(),
            "arg" => launch.args.push(value.into()),
            _ => return Err(format!("unknown: {word}").into()),
        }
    }
    let exit = launch.command().spawn()?.wait()?;
    Ok(u8::try_from(exit.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from))
}
