//! Servers that do not keep to their side of the pipe: deaf, silent, flooding, or with answers to nobody's question.

use std::fs;
use std::time::Duration;

use moored_client::{CallError, Restart, ServerSet, ServerSpec, SetOptions, Stderr};
use moored_containment::Ladder;
use rmcp::model::CallToolRequestParams;
use serde_json::json;

use super::{DEADLINE, Stage, ask_pid, assert_ended, assert_verified, blocking, connect, handle, object};
use moored_testkit::wait_until;

/// A server that answers `initialize`, hears that it is connected, and does this then.
fn after_hello(stage: &Stage, name: &str, then: &str) -> ServerSpec {
    let info = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}"#;
    let script = format!(
        r#"echo $$ >>"$1"; read -r line; id=${{line#*\"id\":}}; id=${{id%%[,\}}]*}}
        printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" '{info}'; read -r line; {then}"#
    );
    let ladder = Ladder::default().grace(Duration::from_millis(200)).kill_after(Duration::from_millis(200));
    let spec = ServerSpec::new(name, "sh").args(["-c", &script, name]).arg(stage.pid_file(name));
    spec.ladder(ladder).stderr(Stderr::Null)
}

/// A call with so many bytes of arguments.
fn call(bytes: usize) -> CallToolRequestParams {
    CallToolRequestParams::new("any").with_arguments(object(json!({ "text": "x".repeat(bytes) })))
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.unwrap_or_else(|_| panic!("{what}: not in time"))
}

/// It closes its input and lives on: a call is told, and the server is ended.
pub(crate) async fn deaf(stage: &Stage) {
    let spec = after_hello(stage, "deaf", "exec 0<&-; exec sleep 600").restart(Restart::Never);
    let set = connect([spec, stage.stub("good")]).await;
    let deaf = handle(&set, "deaf");
    // What is sent before it has closed its input is not refused, and never answered.
    let told = in_time("a call that cannot be sent", async {
        loop {
            let call = tokio::time::timeout(Duration::from_millis(300), deaf.call_tool(call(1)));
            if let Ok(Err(error)) = call.await {
                break error;
            }
        }
    });
    let told = told.await;
    assert!(matches!(told, CallError::Ended { .. } | CallError::Lost { .. }), "{told}");
    in_time("its end", async {
        while !deaf.is_ended() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(stage.alive("deaf").is_empty());
    ask_pid(&handle(&set, "good")).await.expect("the other one serves");
    assert_verified(&set.shutdown().await, 2);
}

/// What of this process could be left of a connection: files and tasks.
fn belongings() -> (usize, usize) {
    let files = fs::read_dir("/proc/self/fd").expect("our files").count();
    (files, tokio::runtime::Handle::current().metrics().num_alive_tasks())
}

type Told = tokio::task::JoinHandle<Result<(), CallError>>;

/// A call in flight that is larger than any pipe.
async fn stuffed_call(set: &ServerSet) -> Told {
    let stuffed = handle(set, "stuffed");
    let mut call = Box::pin(async move { stuffed.call_tool(call(300_000)).await.map(drop) });
    let sent = tokio::time::timeout(Duration::from_millis(200), &mut call).await;
    assert!(sent.is_err(), "nobody reads it");
    tokio::spawn(call)
}

/// It never reads, and a call is in flight: whatever ends the server, the call is told, and nothing of the connection is left
/// in this process.
pub(crate) async fn never_reads(stage: &Stage) {
    let spec =
        |number: usize| after_hello(stage, "stuffed", "exec sleep 600").env("GENERATION", number.to_string());
    let options = || SetOptions::default().drain(Duration::from_millis(50));
    // Once for what stays, such as the runtime's own files.
    drop(connect([stage.stub("good")]).await);
    let (files, tasks) = belongings();
    for _ in 0..3 {
        let set = ServerSet::connect([spec(0)], options()).await.expect("one name");
        let told = stuffed_call(&set).await;
        let replaced = in_time("a replacement", set.replace([spec(1)])).await.expect("it comes up");
        assert!(matches!(&replaced.ended[0].outcome, Some(Ok(report)) if report.verified), "{replaced:?}");
        assert_ended(&in_time("a call", told).await.expect("no panic"));

        let told = stuffed_call(&set).await;
        in_time("a shutdown", set.shutdown()).await;
        assert_ended(&in_time("a call", told).await.expect("no panic"));

        let set = ServerSet::connect([spec(2)], options()).await.expect("one name");
        let told = stuffed_call(&set).await;
        blocking(|| drop(set));
        assert_ended(&in_time("a call", told).await.expect("no panic"));
        assert!(stage.alive("stuffed").is_empty());

        // rmcp gives its own side two seconds at the end of a connection.
        blocking(|| {
            wait_until("nothing of it is left here", DEADLINE, || {
                let now = belongings();
                (now.0 <= files && now.1 <= tasks).then_some(())
            });
        });
    }
}

/// It says more than anybody wants to hear: other servers are served, and it ends as any other.
pub(crate) async fn floods(stage: &Stage) {
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let specs = [
        after_hello(stage, "news", &format!("exec yes '{notification}'")),
        after_hello(stage, "garbage", "exec yes 'this is no JSON {'"),
        after_hello(stage, "shapeless", "exec yes '{}'"),
        after_hello(stage, "endless", "exec cat /dev/zero"),
        after_hello(stage, "strangers", r#"exec yes '{"jsonrpc":"2.0","id":4711,"result":{}}'"#),
        stage.stub("good"),
    ];
    let set = connect(specs).await;
    let good = handle(&set, "good");
    for _ in 0..20 {
        in_time("the good one", ask_pid(&good)).await.expect("it serves");
    }
    let hung = tokio::spawn({
        let strangers = handle(&set, "strangers");
        async move { strangers.call_tool(call(1)).await }
    });
    assert_verified(&in_time("a shutdown", set.shutdown()).await, 6);
    assert_ended(&in_time("a call", hung).await.expect("no panic"));
    for name in ["news", "garbage", "shapeless", "endless", "strangers"] {
        assert_eq!((stage.pids(name).len(), stage.alive(name).len()), (1, 0), "{name}");
    }
}

/// It exits in the middle of a call, and right after it has said hello.
pub(crate) async fn goes_in_the_middle(stage: &Stage) {
    let specs = [
        after_hello(stage, "mid", "read -r line; exit 3").restart(Restart::Never),
        after_hello(stage, "brief", "exit 4").restart(Restart::Never),
    ];
    let set = ServerSet::connect(specs, SetOptions::default()).await.expect("names differ");
    let mid = handle(&set, "mid");
    assert_ended(&in_time("a call", mid.call_tool(call(1))).await);
    // It may have been gone before anybody looked: then it counts as one that did not come up.
    match set.server("brief") {
        Some(brief) => assert_ended(&in_time("a call", brief.call_tool(call(1))).await),
        None => assert!(set.failures()[0].error.to_string().contains("exit code 4"), "{:?}", set.failures()),
    }
    assert!(stage.alive("mid").is_empty() && stage.alive("brief").is_empty());
}
