//! Help, usage errors and exit codes.

use std::io::Read as _;
use std::process::Stdio;

use crate::home::{Home, said};

#[test]
fn help_names_every_verb_and_every_option_of_the_contract() {
    let home = Home::new();
    let help = home.moored(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    for verb in ["run", "ps", "inspect", "stop", "logs", "events", "config", "completions", "man", "demo"] {
        assert!(help.stdout.lines().any(|line| line.trim_start().starts_with(&format!("{verb} "))), "{verb}");
    }
    assert!(!help.stdout.contains("demo-part"), "{}", help.stdout);
    let help = home.moored(&["run", "--help"]).stdout;
    for option in [
        "config",
        "name",
        "grace",
        "kill-after",
        "idle",
        "max-lifetime",
        "max-instances",
        "over-limit",
        "restart",
        "server-version",
        "pid-file",
        "info-tool",
        "keep",
        "containers",
        "sealed",
        "strict",
        "direct",
        "log-file",
        "log-level",
        "log-format",
    ] {
        assert!(help.contains(&format!("--{option}")), "{option}: {help}");
    }
    assert!(!help.contains("--line-limit"), "{help}");
}

#[test]
fn the_version_is_the_packages() {
    let said = Home::new().moored(&["--version"]);
    assert_eq!((said.code, said.stdout), (0, format!("moored {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn what_is_not_understood_ends_with_2_and_says_so_on_stderr() {
    let home = Home::new();
    let wrong: [&[&str]; 13] = [
        &[],
        &["bogus"],
        &["run"],
        &["run", "--"],
        &["--"],
        &["run", "cat"],
        &["run", "--bogus", "--", "cat"],
        &["run", "--grace", "soon", "--", "cat"],
        &["run", "--containers", "all", "--", "cat"],
        &["run", "--strict", "--keep", "tmux", "--", "cat"],
        &["run", "--max-instances", "-1", "--", "cat"],
        &["stop"],
        &["events", "--since", "yesterday"],
    ];
    for args in wrong {
        let said = home.moored(args);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{args:?}: {said:?}");
        assert!(!said.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_run_without_the_two_dashes_is_told_about_them() {
    let said = Home::new().moored(&["run", "npx", "-y", "srv"]);
    assert!(said.stderr.contains("\n\nhint: "), "{}", said.stderr);
    assert!(said.stderr.contains("moored run [OPTIONS] -- CMD"), "{}", said.stderr);
}

#[test]
fn a_run_ends_with_the_servers_code_and_writes_nothing_of_its_own() {
    let home = Home::new();
    for args in [&["run", "--", "sh", "-c", "echo out; exit 7"][..], &["--", "sh", "-c", "echo out; exit 7"]]
    {
        let said = home.moored(args);
        assert_eq!((said.code, said.stdout.as_str(), said.stderr.as_str()), (7, "out\n", ""));
    }
    assert_eq!(home.moored(&["run", "--", "sh", "-c", "kill -9 $$"]).code, 137);
    assert_eq!(home.moored(&["run", "--", "/nowhere/srv"]).code, 127);
    assert_eq!(home.moored(&["run", "--", "/etc/passwd"]).code, 126);
}

#[test]
fn a_reader_that_leaves_is_a_normal_end() {
    let home = Home::new();
    for args in [&["completions", "bash"][..], &["config", "schema"], &["ps"], &["--help"], &["man"]] {
        let mut child =
            home.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("moored");
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut errors).expect("text");
        assert_eq!((child.wait().expect("its end").code(), errors.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn completions_and_the_manual_come_from_the_definition() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = home.moored(&["completions", shell]);
        assert!(said.code == 0 && said.stdout.contains("kill-after"), "{shell}");
    }
    assert!(home.moored(&["man"]).stdout.contains("moored\\-run(1)"));
    assert!(home.moored(&["man", "run"]).stdout.contains("kill\\-after"));
    assert_eq!(home.moored(&["man", "bogus"]).code, 2);
}

#[test]
fn colours_are_for_terminals_only() {
    let home = Home::new();
    assert_eq!(home.moored(&["ps"]).stdout.split_whitespace().next(), Some("ID"));
    let forced = said(home.command(&["ps"]).env("CLICOLOR_FORCE", "1")).stdout;
    assert!(forced.starts_with("\u{1b}[1mID"), "{forced:?}");
    let refused = said(home.command(&["ps"]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1")).stdout;
    assert!(refused.starts_with("ID"), "{refused:?}");
}

#[test]
fn log_lines_go_to_stderr_from_the_level_that_is_asked_for() {
    let home = Home::new();
    let run = ["run", "--name", "srv", "--", "echo", "out"];
    let asked: [(&[&str], Option<&str>); 4] = [
        (&["--log-level", "debug"], None),
        (&[], Some("debug")),
        (&["--log-level", "trace"], Some("error")),
        (&["--log-format", "json", "--log-level=debug"], None),
    ];
    for (options, variable) in asked {
        // Before the verb and after it.
        for args in [[options, &run].concat(), [&run[..1], options, &run[1..]].concat()] {
            let mut command = home.command(&args);
            variable.map(|level| command.env("MOORED_LOG", level));
            let said = said(&mut command);
            assert_eq!((said.code, said.stdout.as_str()), (0, "out\n"), "{args:?}: {said:?}");
            let line = said.stderr.lines().find(|line| line.contains("settings are read")).expect("a line");
            if options.contains(&"json") {
                let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
                assert_eq!((&line["level"], &line["fields"]["server"]), (&"DEBUG".into(), &"srv".into()));
            } else {
                assert!(line.contains("DEBUG") && line.contains("server=\"srv\""), "{line}");
            }
        }
    }
}

#[test]
fn a_run_logs_nothing_unless_asked() {
    let home = Home::new();
    for options in [&[][..], &["--log-level", "info"], &["--log-format", "json"]] {
        let said = home.moored(&[options, &["run", "--", "true"]].concat());
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{options:?}");
    }
    let wrong = home.moored(&["--log-level", "loud", "ps"]);
    assert_eq!((wrong.code, wrong.stdout.as_str()), (2, ""), "{wrong:?}");
    let wrong = said(home.command(&["ps"]).env("MOORED_LOG", "loud"));
    assert_eq!((wrong.code, wrong.stderr.contains("`MOORED_LOG`")), (2, true), "{wrong:?}");
}
