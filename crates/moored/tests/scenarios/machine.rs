//! What the machine itself does to a session: memory runs out, the wall clock is set. S40, S41.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_testkit::{User, wait_until};
use serde_json::{Value, json};

use crate::common::DEADLINE;
use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::seen::{finish_all, ps, start, wait_until_awake};

// === S41: the kernel kills whoever has most of the memory ===

/// A control group that may have so much memory and no more.
struct Narrow(PathBuf);

impl Narrow {
    /// None where nobody may make one: not as root, or the kernel has no such controller.
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("moored-narrow-{}", std::process::id());
        let groups = [
            (Path::new("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
            (Path::new("/sys/fs/cgroup"), "memory.max"),
        ];
        groups.into_iter().find_map(|(root, limit)| {
            let group = root.join(&name);
            fs::create_dir(&group).ok()?;
            let narrow = Self(group);
            fs::write(narrow.0.join(limit), bytes.to_string()).ok()?;
            Some(narrow)
        })
    }

    fn take(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("a process that lives");
    }
}

impl Drop for Narrow {
    fn drop(&mut self) {
        // The last of those that were in it may not be collected yet.
        let until = std::time::Instant::now() + DEADLINE;
        while fs::remove_dir(&self.0).is_err() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
    }
}

/// Answers everything, and when it is told to eat, eats.
const EATER: &str = r#"
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"text":"eat"'*) x=$(head -c 500000000 /dev/zero | tr '\0' x);;
    *'"id":'*) ;;
    *) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"fed"}]}}\n' "$id"
done
"#;

#[test]
fn s41_memory_that_runs_out_takes_the_server_alone() {
    for scene in Scene::all() {
        let Some(narrow) = Narrow::new(64 << 20) else {
            assert_ne!(User::current(), User::Root, "root can make a control group for memory");
            continue;
        };
        fs::write(scene.scratch.join("eater.sh"), EATER).expect("a script");
        let scene = scene.hasty().options(["--restart", "on-crash"]).server(["sh", "eater.sh"]);
        let mut wire = start(&scene);
        scene.mark.alive().iter().for_each(|one| narrow.take(one.pid));
        let params = json!({ "name": "echo", "arguments": { "text": "eat" } });
        let answer = wire.ask(1, "tools/call", params);
        let why = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("it was fed: {answer}"));
        assert!(why.contains("signal 9"), "{why}");
        wire.assert_echo(2, "fed");
        finish_all(&scene, vec![wire]);
    }
}

// === S40: the wall clock ===

/// A session with a wall clock of its own, which can be set while it runs.
struct Clocked {
    scene: Scene,
    clock: PathBuf,
}

impl Clocked {
    fn new(scene: Scene) -> Self {
        let clock = scene.scratch.join("clock");
        let clocked = Self { scene, clock };
        clocked.set("+0s");
        clocked
    }

    /// In one step: a file that is half written is another time.
    fn set(&self, offset: &str) {
        let draft = self.clock.with_extension("draft");
        fs::write(&draft, offset).expect("a file");
        fs::rename(&draft, &self.clock).expect("the same folder");
    }

    /// The command of the scene, or another verb. The clock is put in by `env`: whoever changes the user before it must not
    /// have it, for it would be that user's.
    fn command(&self, args: &[&str]) -> std::process::Command {
        let argv = self.scene.argv();
        let argv = match args {
            [] => argv,
            args => argv[..1].iter().cloned().chain(args.iter().map(Into::into)).collect(),
        };
        let set = |name: &str, value: &Path| OsString::from(format!("{name}={}", value.display()));
        let clock = [
            set("LD_PRELOAD", &library()),
            set("FAKETIME_TIMESTAMP_FILE", &self.clock),
            "FAKETIME_NO_CACHE=1".into(),
            "FAKETIME_DONT_FAKE_MONOTONIC=1".into(),
        ];
        self.scene.command("env", clock.into_iter().chain(argv))
    }

    fn ps(&self, args: &[&str]) -> Vec<Value> {
        let output = self.command(args).output().expect("moored");
        assert!(output.status.success(), "{output:?}");
        let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        shown["servers"].as_array().expect("a list").clone()
    }
}

/// Where Debian has it, and where others do.
fn library() -> PathBuf {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib64"];
    let found = folders.iter().map(|folder| Path::new(folder).join("faketime/libfaketime.so.1"));
    found.into_iter().find(|path| path.exists()).expect("libfaketime")
}

#[test]
fn s40_a_wall_clock_that_is_set_ends_nothing_and_delays_nothing_needs_faketime() {
    for scene in Scene::all() {
        for step in ["-3600s", "+3600s"] {
            let scene = Scene::new(scene.user).hasty().options(["--idle", "1500ms"]);
            let clocked = Clocked::new(scene);
            let mut wire = Wire::start(clocked.command(&[]));
            wire.initialize();
            let before = ps(&clocked.scene)[0]["pid"].clone();
            clocked.set(step);
            wire.assert_echo(1, "as before");
            let row = clocked.ps(&["ps", "--json"])[0].clone();
            assert_eq!(row["pid"], before, "nothing was ended: {row}");
            let age = row["uptime_seconds"].as_f64().expect("a number");
            assert!((0.0..60.0).contains(&age), "an age is not told by the wall clock: {row}");
            wire.assert_echo(2, "and it is not put to sleep early");
            // It is put to sleep when its time has come, and not an hour later.
            wait_until_awake(&clocked.scene, 0);
            wire.assert_echo(3, "woken");
            wire.close_stdin();
            wait_until("it is gone in time", Duration::from_secs(4), || {
                clocked.scene.mark.alive().is_empty().then_some(())
            });
            finish_all(&clocked.scene, vec![wire]);
            let row = clocked.ps(&["ps", "-a", "--json"])[0].clone();
            assert!(row["uptime_seconds"].as_f64().is_some_and(|age| age >= 0.0), "{row}");
        }
    }
}
