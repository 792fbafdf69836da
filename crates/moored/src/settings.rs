//! What was typed, and what is written in the environment and the files, becomes what is meant: a [`ServerSpec`].
//!
//! A flag beats a `MOORED_*` variable, which beats a file, which beats the default; of the files the nearest wins, value
//! by value. Each value knows where it came from, so that a wrong one can be found. `layers` owns that order, `files`
//! where the files are and how they are read, `units` how a value is written.

mod files;
mod keys;
mod layers;
mod units;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_containment::Ladder;
use moored_supervisor::spec::{Idle, OverLimit, Restart, Rules, ServerSpec, server_name};

use crate::args::RunArgs;
use crate::exit::Failure;

pub(crate) use files::{SettingsFile, candidates, read_all, read_one};
pub(crate) use keys::{KEYS, Kind, schema};
pub(crate) use layers::{Layers, Origin};
pub(crate) use units::duration;

/// What to do about containers that the server starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Containers {
    /// Do not look at them.
    #[default]
    Off,
    /// Say which there are.
    Report,
    /// End those that the server is attached to.
    Attached,
    /// End all that the session created.
    Session,
}

/// A `run` as it is meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunSettings {
    /// The server and the rules for its life.
    pub(crate) spec: ServerSpec,
    /// What to do about containers.
    pub(crate) containers: Containers,
}

/// What a `run` finds around it.
#[derive(Debug)]
pub(crate) struct Around {
    /// The working directory.
    pub(crate) cwd: PathBuf,
    /// The environment.
    pub(crate) env: BTreeMap<OsString, OsString>,
}

impl RunSettings {
    /// Reads the settings of a `run`.
    pub(crate) fn read(args: RunArgs, around: Around, files: Vec<SettingsFile>) -> Result<Self, Failure> {
        let layers = Layers::of_run(&args, &around.env, files);
        let rules = rules(&layers, &around)?;
        let containers = layers.one_of("containers", &CONTAINERS)?.unwrap_or_default();
        let name = layers.text("name")?.unwrap_or_else(|| server_name(&args.command));
        let Around { cwd, env } = around;
        Ok(Self { spec: ServerSpec { name, command: args.command, cwd, env, rules }, containers })
    }
}

const CONTAINERS: [(&str, Containers); 4] = [
    ("off", Containers::Off),
    ("report", Containers::Report),
    ("attached", Containers::Attached),
    ("session", Containers::Session),
];

fn rules(layers: &Layers, around: &Around) -> Result<Rules, Failure> {
    let usual = Rules::default();
    let ladder = Ladder::default()
        .grace(layers.read("grace", duration)?.unwrap_or(usual.ladder.grace))
        .kill_after(layers.read("kill-after", duration)?.unwrap_or(usual.ladder.kill_after));
    let auto = layers.read("auto-idle", duration)?.map_or(usual.idle, Idle::Auto);
    let rules = Rules {
        ladder,
        idle: layers.read("idle", |text| idle(text, auto))?.unwrap_or(auto),
        max_lifetime: layers.read("max-lifetime", lifetime)?.flatten(),
        max_instances: layers.read("max-instances", units::count)?.flatten(),
        over_limit: layers.one_of("over-limit", &OVER_LIMIT)?.unwrap_or_default(),
        restart: layers.one_of("restart", &RESTART)?.unwrap_or_default(),
        server_version: layers.text("server-version")?,
        pid_file: layers.path("pid-file", &around.cwd),
        info_tool: layers.read("info-tool", units::switch)?.unwrap_or_default(),
        keep: layers.list("keep"),
        sealed: layers.read("sealed", units::switch)?.unwrap_or_default(),
        strict: layers.read("strict", units::switch)?.unwrap_or_default(),
        direct: layers.read("direct", units::switch)?.unwrap_or_default(),
        log_file: layers.path("log-file", &around.cwd),
        line_limit: layers.read("line-limit", units::size)?.unwrap_or(usual.line_limit),
    };
    refuse_contradictions(&rules)?;
    Ok(rules)
}

/// A kernel that ends everything at one stroke can spare nobody.
fn refuse_contradictions(rules: &Rules) -> Result<(), Failure> {
    let layer = if rules.sealed {
        "--sealed"
    } else if rules.strict {
        "--strict"
    } else {
        return Ok(());
    };
    if rules.keep.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format_args!("`--keep` cannot be used with `{layer}`, which can spare nobody")).hint(
        format_args!("leave out `{layer}`, or `--keep` (it may come from the settings: moored config show)"),
    ))
}

const OVER_LIMIT: [(&str, OverLimit); 3] = [
    ("hibernate", OverLimit::Hibernate),
    ("stop-oldest", OverLimit::StopOldest),
    ("refuse", OverLimit::Refuse),
];

const RESTART: [(&str, Restart); 2] = [("never", Restart::Never), ("on-crash", Restart::OnCrash)];

fn idle(text: &str, auto: Idle) -> Result<Idle, String> {
    match text {
        "auto" => Ok(auto),
        "off" => Ok(Idle::Off),
        text => match duration(text) {
            Ok(Duration::ZERO) => Err("expected more than no time; `off` means never".to_owned()),
            Ok(silence) => Ok(Idle::After(silence)),
            Err(_) => Err("expected auto, off, or a duration like 500ms, 2s, 15m or 1h".to_owned()),
        },
    }
}

fn lifetime(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "off" => Ok(None),
        text => match duration(text)? {
            Duration::ZERO => Err("expected more than no time; `off` means for ever".to_owned()),
            lifetime => Ok(Some(lifetime)),
        },
    }
}

/// Reads the whole of a settings file as `run` would, for `config check`.
pub(crate) fn check(file: SettingsFile) -> Result<(), Failure> {
    let around = Around { cwd: "/".into(), env: BTreeMap::new() };
    let args = RunArgs { command: vec!["check".into()], ..RunArgs::default() };
    RunSettings::read(args, around, vec![file]).map(drop)
}

/// Where a path that stands in a file begins: beside that file.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed_args(line: &str) -> RunArgs {
        use clap::Parser as _;
        let words =
            ["moored", "run"].into_iter().chain(line.split_whitespace()).chain(["--", "npx", "-y", "srv"]);
        match crate::args::Typed::try_parse_from(words).expect("is understood").verb {
            crate::args::Verb::Run(args) => *args,
            other => panic!("not a run: {other:?}"),
        }
    }

    fn read(line: &str, env: &[(&str, &str)], files: &[(&str, &str)]) -> Result<RunSettings, Failure> {
        let files = files
            .iter()
            .map(|(path, text)| SettingsFile::parse(path.into(), text).expect("a settings file"))
            .collect();
        let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        RunSettings::read(typed_args(line), Around { cwd: "/work".into(), env }, files)
    }

    fn rules_of(line: &str, env: &[(&str, &str)], files: &[(&str, &str)]) -> Rules {
        read(line, env, files).expect("sound settings").spec.rules
    }

    fn message(result: Result<RunSettings, Failure>) -> (String, u8) {
        match result.expect_err("unsound settings") {
            Failure::Told { message, exit, .. } => (message, exit.code()),
            Failure::BrokenPipe => panic!("nothing was written"),
        }
    }

    #[test]
    fn nothing_said_gives_the_defaults() {
        let settings = read("", &[], &[]).expect("sound settings");
        assert_eq!(settings.spec.rules, Rules::default());
        assert_eq!(settings.spec.name, "srv");
        assert_eq!(settings.spec.command, ["npx", "-y", "srv"]);
        assert_eq!(settings.spec.cwd, PathBuf::from("/work"));
        assert_eq!(settings.containers, Containers::Off);
    }

    #[test]
    fn every_option_of_a_run_is_understood() {
        let line = "--name n --grace 1s --kill-after 500ms --idle 15m --max-lifetime 1h --max-instances 3 \
             --over-limit refuse --restart on-crash --server-version 1.2 --pid-file a.pid --info-tool --keep tmux adb \
             --containers session --direct --log-file /l/x.log --line-limit 1M";
        let settings = read(line, &[], &[]).expect("sound settings");
        let expected = Rules {
            ladder: Ladder::default().grace(Duration::from_secs(1)).kill_after(Duration::from_millis(500)),
            idle: Idle::After(Duration::from_mins(15)),
            max_lifetime: Some(Duration::from_hours(1)),
            max_instances: Some(3),
            over_limit: OverLimit::Refuse,
            restart: Restart::OnCrash,
            server_version: Some("1.2".into()),
            pid_file: Some("/work/a.pid".into()),
            info_tool: true,
            keep: vec!["tmux".into(), "adb".into()],
            sealed: false,
            strict: false,
            direct: true,
            log_file: Some("/l/x.log".into()),
            line_limit: 1 << 20,
        };
        assert_eq!(settings.spec.rules, expected);
        assert_eq!((settings.spec.name.as_str(), settings.containers), ("n", Containers::Session));
        let rules = rules_of("--sealed --strict", &[], &[]);
        assert_eq!((rules.sealed, rules.strict), (true, true));
    }

    #[test]
    fn a_flag_beats_the_environment_which_beats_a_file_and_the_nearest_file_wins() {
        let near = ("/work/moored.toml", "[run]\ngrace = '3s'");
        let far = ("/etc/moored/config.toml", "[run]\ngrace = '4s'\nkill-after = '5s'\nsealed = true");
        let env = [("MOORED_GRACE", "2500ms")];
        let grace =
            |line, env: &[(&str, &str)], files: &[(&str, &str)]| rules_of(line, env, files).ladder.grace;
        assert_eq!(grace("--grace 1s", &env, &[near, far]), Duration::from_secs(1));
        assert_eq!(grace("", &env, &[near, far]), Duration::from_millis(2500));
        assert_eq!(grace("", &[], &[near, far]), Duration::from_secs(3));
        assert_eq!(grace("", &[], &[far]), Duration::from_secs(4));
        let rules = rules_of("--sealed=false", &env, &[near, far]);
        assert_eq!((rules.ladder.kill_after, rules.sealed), (Duration::from_secs(5), false));
    }

    #[test]
    fn an_empty_variable_says_nothing() {
        assert_eq!(rules_of("", &[("MOORED_GRACE", "")], &[]).ladder, Ladder::default());
    }

    #[test]
    fn instances_are_also_capped_by_the_name_that_others_use() {
        let old = ("MAX_KEEP_PROCESSES", "4");
        assert_eq!(rules_of("", &[old], &[]).max_instances, Some(4));
        assert_eq!(rules_of("", &[old, ("MOORED_MAX_INSTANCES", "2")], &[]).max_instances, Some(2));
        assert_eq!(rules_of("--max-instances off", &[old], &[]).max_instances, None);
    }

    #[test]
    fn the_patience_of_auto_can_be_set_for_tests() {
        let env = [("MOORED_AUTO_IDLE", "1s")];
        assert_eq!(rules_of("", &env, &[]).idle, Idle::Auto(Duration::from_secs(1)));
        assert_eq!(rules_of("--idle off", &env, &[]).idle, Idle::Off);
        assert_eq!(rules_of("--idle auto", &[], &[]).idle, Idle::default());
    }

    #[test]
    fn values_of_a_file_may_be_numbers_switches_and_lists() {
        let text = "[run]\nmax-instances = 3\ninfo-tool = true\nkeep = ['tmux', 'adb']\nlog-file = 'x.log'";
        let rules = rules_of("", &[], &[("/etc/moored/config.toml", text)]);
        assert_eq!((rules.max_instances, rules.info_tool), (Some(3), true));
        assert_eq!(rules.keep, ["tmux", "adb"]);
        assert_eq!(rules.log_file, Some("/etc/moored/x.log".into()), "beside the file that names it");
        assert_eq!(rules_of("", &[("MOORED_KEEP", "a,b")], &[]).keep, ["a", "b"]);
    }

    #[test]
    fn a_wrong_value_is_told_with_its_origin() {
        let (text, code) = message(read("--grace soon", &[], &[]));
        assert!(text.starts_with("invalid value `soon` for `--grace`: "), "{text}");
        assert_eq!(code, 2);
        let (text, code) = message(read("", &[("MOORED_IDLE", "x")], &[]));
        assert!(text.starts_with("invalid value `x` for `MOORED_IDLE`: "), "{text}");
        assert_eq!(code, 2);
        let (text, code) = message(read("", &[], &[("/etc/c.toml", "[run]\nrestart = 'always'")]));
        assert!(text.contains("`always` for `run.restart` in `/etc/c.toml`"), "{text}");
        assert!(text.contains("never, on-crash"), "{text}");
        assert_eq!(code, 125);
    }

    #[test]
    fn zero_patience_that_would_mean_never_or_always_is_refused() {
        for line in ["--idle 0s", "--max-lifetime 0s", "--max-instances 0", "--line-limit 0"] {
            assert_eq!(message(read(line, &[], &[])).1, 2, "{line}");
        }
        assert_eq!(rules_of("--grace 0s --kill-after 0", &[], &[]).ladder.grace, Duration::ZERO);
    }

    #[test]
    fn what_can_spare_nobody_refuses_to_keep() {
        for line in ["--sealed --keep tmux", "--strict --keep tmux"] {
            let (text, code) = message(read(line, &[], &[]));
            assert!(text.contains("--keep"), "{text}");
            assert_eq!(code, 2);
        }
    }
}
