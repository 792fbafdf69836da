//! What is meant by what was typed, in all orders of the places that can say it.

use std::path::PathBuf;
use std::time::Duration;

use moored_launch::{OverLimit, Restart};

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
    RunSettings::read(typed_args(line), ProcessEnv { cwd: "/work".into(), env }, files)
}

fn rules_of(line: &str, env: &[(&str, &str)], files: &[(&str, &str)]) -> Rules {
    read(line, env, files).expect("sound settings").spec.rules
}

fn launch_of(line: &str, env: &[(&str, &str)], files: &[(&str, &str)]) -> Launch {
    read(line, env, files).expect("sound settings").spec.launch
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
    let usual = Launch { stdio: LaunchStdio::PIPED, ..Launch::new("srv", "npx").args(["-y", "srv"]) };
    assert_eq!(settings.spec.launch, usual);
    assert_eq!(settings.spec.cwd(), PathBuf::from("/work"));
    assert_eq!(settings.containers, Containers::Off);
}

#[test]
fn every_option_of_a_run_is_understood() {
    let line = "--name n --grace 1s --kill-after 500ms --idle 15m --max-lifetime 1h --max-instances 3 \
         --over-limit refuse --restart on-crash --server-version 1.2 --pid-file a.pid --info-tool --keep tmux adb \
         --containers session --direct --log-file /l/x.log --line-limit 1M";
    let settings = read(line, &[], &[]).expect("sound settings");
    let expected = Rules {
        idle: Idle::After(Duration::from_mins(15)),
        max_lifetime: Some(Duration::from_hours(1)),
        max_instances: Some(3),
        over_limit: OverLimit::Refuse,
        restart: Restart::OnCrash,
        server_version: Some("1.2".into()),
        pid_file: Some("/work/a.pid".into()),
        info_tool: true,
        log_file: Some("/l/x.log".into()),
        line_limit: 1 << 20,
    };
    assert_eq!(settings.spec.rules, expected);
    let expected = Launch {
        ladder: Ladder::default().grace(Duration::from_secs(1)).kill_after(Duration::from_millis(500)),
        keep: vec!["tmux".into(), "adb".into()],
        stdio: LaunchStdio::INHERITED,
        ..Launch::new("n", "npx").args(["-y", "srv"])
    };
    assert_eq!(settings.spec.launch, expected);
    assert!(settings.spec.is_direct());
    assert_eq!(settings.containers, Containers::Session);
    let launch = launch_of("--sealed --strict", &[], &[]);
    assert_eq!(launch.layers, [(Layer::Landlock, Use::Required), (Layer::Pidns, Use::Required)].into());
}

#[test]
fn a_flag_beats_the_environment_which_beats_a_file_and_the_nearest_file_wins() {
    let near = ("/home/u/.config/moored/config.toml", "[run]\ngrace = '3s'");
    let far = ("/etc/moored/config.toml", "[run]\ngrace = '4s'\nkill-after = '5s'\nsealed = true");
    let env = [("MOORED_GRACE", "2500ms")];
    let grace = |line, env: &[(&str, &str)], files: &[(&str, &str)]| launch_of(line, env, files).ladder.grace;
    assert_eq!(grace("--grace 1s", &env, &[near, far]), Duration::from_secs(1));
    assert_eq!(grace("", &env, &[near, far]), Duration::from_millis(2500));
    assert_eq!(grace("", &[], &[near, far]), Duration::from_secs(3));
    assert_eq!(grace("", &[], &[far]), Duration::from_secs(4));
    let launch = launch_of("--sealed=false", &env, &[near, far]);
    assert_eq!((launch.ladder.kill_after, launch.layers.len()), (Duration::from_secs(5), 0));
}

#[test]
fn an_empty_variable_says_nothing() {
    assert_eq!(launch_of("", &[("MOORED_GRACE", "")], &[]).ladder, Ladder::default());
}

#[test]
fn instances_are_also_capped_by_the_name_that_others_use() {
    let old = ("MAX_KEEP_PROCESSES", "4");
    assert_eq!(rules_of("", &[old], &[]).max_instances, Some(4));
    assert_eq!(rules_of("", &[old, ("MOORED_MAX_INSTANCES", "2")], &[]).max_instances, Some(2));
    assert_eq!(rules_of("--max-instances off", &[old], &[]).max_instances, None);
}

#[test]
fn the_idle_time_of_auto_can_be_set_for_tests() {
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
    assert_eq!(launch_of("", &[], &[("/etc/moored/config.toml", text)]).keep, ["tmux", "adb"]);
    assert_eq!(rules.log_file, Some("/etc/moored/x.log".into()), "beside the file that names it");
    assert_eq!(launch_of("", &[("MOORED_KEEP", "a,b")], &[]).keep, ["a", "b"]);
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
fn a_misspelt_variable_is_told_with_the_one_that_may_be_meant() {
    let told = |name: &str| super::super::unknown_variables(&BTreeMap::from([(name.into(), "x".into())]));
    let grace = "the variable `MOORED_GRASE` is passed over; `MOORED_GRACE` may be meant";
    assert_eq!(told("MOORED_GRASE"), [grace]);
    assert_eq!(told("MOORED_LOGLEVEL").len(), 1);
    for name in
        ["MOORED_GRACE", "MOORED_LOG", "MOORED_STATE_DIR", "MOORED_CONFIG", "MOORED_TEST_FULL", "GRASE"]
    {
        assert_eq!(told(name), [""; 0], "{name}");
    }
}

#[test]
fn zero_times_that_would_mean_never_or_always_are_refused() {
    for line in ["--idle 0s", "--max-lifetime 0s", "--max-instances 0", "--line-limit 0"] {
        assert_eq!(message(read(line, &[], &[])).1, 2, "{line}");
    }
    assert_eq!(launch_of("--grace 0s --kill-after 0", &[], &[]).ladder.grace, Duration::ZERO);
}

#[test]
fn what_can_spare_no_process_refuses_to_keep() {
    for line in ["--sealed --keep tmux", "--strict --keep tmux"] {
        let (text, code) = message(read(line, &[], &[]));
        assert!(text.contains("--keep"), "{text}");
        assert_eq!(code, 2);
    }
}
