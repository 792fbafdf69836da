//! The switches of `misbehave`, as typed. What they do stands in `escapes` and `life`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Shown when a switch is not understood.
pub(super) const USAGE: &str = "\
usage: misbehave [switch]...
  ends:     --ignore-eof --spin-after-eof --die-on-eof-after MS --exit-code N --exit-now N --die-by SIGNAL
            --crash-after N --ignore-term --stop-self
  pipes:    --block-stdout --block-stderr BYTES --slow-start MS --allocate MB
  escapes:  --grandchild --daemon --clean-daemon --own-group --own-session-child --stopped-child
            --tree N --chain N --tree-ignores-term --storm N --storm-period MICROS
            --keep-alive-child NAME --keep-dir DIR
  shape:    --wrap-shell --pid-file PATH --ready-file PATH
";

/// Everything that can be asked of the server. The default is a good server.
#[derive(Clone, Debug, Default)]
pub(super) struct Switches {
    pub(super) ignore_eof: bool,
    pub(super) ignore_term: bool,
    pub(super) spin_after_eof: bool,
    pub(super) die_on_eof_after: Option<Duration>,
    pub(super) exit_code: u8,
    pub(super) exit_now: Option<u8>,
    pub(super) die_by: Option<i32>,
    pub(super) crash_after: Option<u64>,
    pub(super) stop_self: bool,
    pub(super) block_stdout: bool,
    pub(super) block_stderr: Option<usize>,
    pub(super) slow_start: Option<Duration>,
    pub(super) allocate_mb: Option<usize>,
    pub(super) grandchild: bool,
    pub(super) daemon: bool,
    pub(super) clean_daemon: bool,
    pub(super) own_group: bool,
    pub(super) own_session_child: bool,
    pub(super) stopped_child: bool,
    pub(super) tree: usize,
    pub(super) chain: usize,
    pub(super) tree_ignores_term: bool,
    pub(super) storm: usize,
    pub(super) storm_period_micros: u64,
    pub(super) keep_alive_child: Option<OsString>,
    pub(super) keep_dir: Option<PathBuf>,
    pub(super) wrap_shell: bool,
    pub(super) pid_file: Option<PathBuf>,
    pub(super) ready_file: Option<PathBuf>,
}

impl Switches {
    /// Reads the arguments; the error names the one that was not understood.
    pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut switches = Self::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let name = arg.to_str().unwrap_or_default().to_owned();
            let mut value = || args.next().ok_or_else(|| format!("`{name}` needs a value"));
            match &*name {
                "--ignore-eof" => switches.ignore_eof = true,
                "--ignore-term" => switches.ignore_term = true,
                "--spin-after-eof" => switches.spin_after_eof = true,
                "--die-on-eof-after" => switches.die_on_eof_after = Some(millis(value()?)?),
                "--exit-code" => switches.exit_code = number(value()?)?,
                "--exit-now" => switches.exit_now = Some(number(value()?)?),
                "--die-by" => switches.die_by = Some(number(value()?)?),
                "--crash-after" => switches.crash_after = Some(number(value()?)?),
                "--stop-self" => switches.stop_self = true,
                "--block-stdout" => switches.block_stdout = true,
                "--block-stderr" => switches.block_stderr = Some(number(value()?)?),
                "--slow-start" => switches.slow_start = Some(millis(value()?)?),
                "--allocate" => switches.allocate_mb = Some(number(value()?)?),
                "--grandchild" => switches.grandchild = true,
                "--daemon" => switches.daemon = true,
                "--clean-daemon" => switches.clean_daemon = true,
                "--own-group" => switches.own_group = true,
                "--own-session-child" => switches.own_session_child = true,
                "--stopped-child" => switches.stopped_child = true,
                "--tree" => switches.tree = number(value()?)?,
                "--chain" => switches.chain = number(value()?)?,
                "--tree-ignores-term" => switches.tree_ignores_term = true,
                "--storm" => switches.storm = number(value()?)?,
                "--storm-period" => switches.storm_period_micros = number(value()?)?,
                "--keep-alive-child" => switches.keep_alive_child = Some(value()?),
                "--keep-dir" => switches.keep_dir = Some(value()?.into()),
                "--wrap-shell" => switches.wrap_shell = true,
                "--pid-file" => switches.pid_file = Some(value()?.into()),
                "--ready-file" => switches.ready_file = Some(value()?.into()),
                _ => return Err(format!("unknown switch `{}`", arg.display())),
            }
        }
        Ok(switches)
    }
}

fn number<T: std::str::FromStr>(text: OsString) -> Result<T, String> {
    let parsed = text.to_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| format!("`{}` is no number in range", text.display()))
}

fn millis(text: OsString) -> Result<Duration, String> {
    number(text).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_of_the_usage_is_understood() {
        for word in USAGE.split_whitespace().filter(|word| word.starts_with("--")) {
            let alone = Switches::parse([word.into()]);
            let with_value = Switches::parse([word.into(), "7".into()]);
            assert!(alone.is_ok() || with_value.is_ok(), "{word}: {alone:?} {with_value:?}");
        }
    }

    #[test]
    fn an_unknown_switch_is_named() {
        assert_eq!(Switches::parse(["--nope".into()]).unwrap_err(), "unknown switch `--nope`");
    }
}
