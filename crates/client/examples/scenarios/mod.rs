//! What the scenarios share: servers that write down their pids, and looks at who is alive of them.

pub(crate) mod bad_servers;
pub(crate) mod ends;
pub(crate) mod given_up;
pub(crate) mod listed;
pub(crate) mod lives;
pub(crate) mod pipes;
pub(crate) mod replacing;
pub(crate) mod runtimes;
pub(crate) mod shortages;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use moored_client::{CallError, Handle, ServerSet, ServerSpec, SetOptions, Stderr};
use moored_containment::EndReport;
use moored_testkit::{read_pids, wait_until};
use rmcp::model::CallToolRequestParams;
use serde_json::json;

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) struct Stage {
    stub: PathBuf,
    misbehave: PathBuf,
    folder: PathBuf,
}

impl Stage {
    pub(crate) fn new(stub: &str, misbehave: &str, folder: &str) -> Self {
        Self { stub: stub.into(), misbehave: misbehave.into(), folder: folder.into() }
    }

    fn pid_file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.pids"))
    }

    /// A good server.
    pub(crate) fn stub(&self, name: &str) -> ServerSpec {
        self.stub_of(name, name)
    }

    /// One of many good servers that write down their pids together.
    pub(crate) fn stub_of(&self, many: &str, name: &str) -> ServerSpec {
        ServerSpec::new(name, &self.stub).arg("--pid-file").arg(self.pid_file(many))
    }

    /// A server with bad habits.
    pub(crate) fn misbehave(&self, name: &str, switches: &[&str]) -> ServerSpec {
        let spec = ServerSpec::new(name, &self.misbehave).args(switches).stderr(Stderr::Null);
        spec.arg("--pid-file").arg(self.pid_file(name))
    }

    /// A path that nothing is at yet.
    pub(crate) fn sign(&self, name: &str) -> String {
        self.folder.join(format!("{name}.sign")).display().to_string()
    }

    /// The runtime folder that the test has given this host.
    pub(crate) fn runtime_folder(&self) -> PathBuf {
        self.folder.join("run")
    }

    /// How many servers have a registration there, or a control socket.
    pub(crate) fn registered(&self) -> usize {
        let entries = fs::read_dir(self.runtime_folder()).into_iter().flatten().flatten();
        let is_registration = |path: &PathBuf| path.extension().is_some_and(|e| e == "run" || e == "sock");
        let ids =
            entries.map(|entry| entry.path()).filter(is_registration).map(|path| path.with_extension(""));
        ids.collect::<BTreeSet<_>>().len()
    }

    pub(crate) fn stub_program(&self) -> &PathBuf {
        &self.stub
    }

    pub(crate) fn misbehave_program(&self) -> &PathBuf {
        &self.misbehave
    }

    /// Every process that a server of that name ever was.
    pub(crate) fn pids(&self, name: &str) -> Vec<u32> {
        read_pids(self.pid_file(name))
    }

    /// Those of them that are there.
    pub(crate) fn alive(&self, name: &str) -> Vec<u32> {
        self.pids(name).into_iter().filter(|pid| is_alive(*pid)).collect()
    }

    pub(crate) fn wait_until_alive(&self, name: &str, count: usize) {
        blocking(|| {
            wait_until(&format!("{count} of `{name}` are alive"), DEADLINE, || {
                (self.alive(name).len() == count).then_some(())
            });
        });
    }
}

fn is_alive(pid: u32) -> bool {
    // The letter stands after the program's name, which ends with the last bracket.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits without keeping the runtime's other tasks from running.
pub(crate) fn blocking<T>(wait: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(wait)
}

pub(crate) async fn connect(specs: impl IntoIterator<Item = ServerSpec>) -> ServerSet {
    let set = ServerSet::connect(specs, SetOptions::default()).await.expect("names differ");
    assert!(set.failures().is_empty(), "{:?}", set.failures());
    set
}

pub(crate) fn handle(set: &ServerSet, name: &str) -> Handle {
    set.server(name).unwrap_or_else(|| panic!("no `{name}` in {set:?}"))
}

/// The pid that answers.
pub(crate) async fn ask_pid(handle: &Handle) -> Result<u32, CallError> {
    let answer = handle.call_tool(CallToolRequestParams::new("pid")).await?;
    let text = answer.content[0].as_text().expect("a text").text.clone();
    Ok(text.parse().expect("a pid"))
}

/// A call that takes so long. It has been sent when this returns.
pub(crate) async fn call_in_flight(
    handle: &Handle,
    tool: &'static str,
    millis: u64,
) -> tokio::task::JoinHandle<Result<(), CallError>> {
    let clone = handle.clone();
    let params = CallToolRequestParams::new(tool).with_arguments(object(json!({ "ms": millis })));
    let call = tokio::spawn(async move { clone.call_tool(params).await.map(drop) });
    tokio::task::yield_now().await;
    // The server answers in order, but for what waits.
    ask_pid(handle).await.expect("an answer");
    call
}

fn object(value: serde_json::Value) -> rmcp::model::JsonObject {
    value.as_object().expect("an object").clone()
}

#[track_caller]
pub(crate) fn assert_ended<T: std::fmt::Debug>(result: &Result<T, CallError>) {
    assert!(matches!(result, Err(CallError::Ended { .. })), "{result:?}");
}

#[track_caller]
pub(crate) fn assert_verified(reports: &[EndReport], count: usize) {
    assert_eq!(reports.len(), count, "{reports:?}");
    for report in reports {
        assert!(report.verified && report.survivors.is_empty(), "{report:?}");
    }
}
