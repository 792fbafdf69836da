//! Servers that are registered while they live, as `moored ps` and `moored stop` see them. The test looks from outside while
//! the host waits for the end of its stdin.

use std::fs;
use std::io::Read as _;

use moored_client::{CallError, EndedWhy, Registration, ServerSet, SetOptions};

use super::{DEADLINE, Stage, ask_pid, assert_verified, blocking, connect, handle};
use moored_testkit::wait_until;

/// Says that the test may look, and waits until it has.
fn let_the_test_look(stage: &Stage, sign: &str) {
    fs::write(stage.sign(sign), "").expect("a sign");
    let mut byte = [0];
    let read = blocking(|| std::io::stdin().read(&mut byte)).expect("our stdin");
    assert!(read <= 1);
}

/// Two servers are listed until their set is dropped.
pub(crate) async fn until_dropped(stage: &Stage) {
    let set = connect([stage.stub("a"), stage.stub("b")]).await;
    assert_eq!(stage.registered(), 2);
    let_the_test_look(stage, "up");
    drop(set);
    assert_eq!(stage.registered(), 0, "the drop removes the files");
    let_the_test_look(stage, "dropped");
}

/// The test stops `a`: it is ended for good, and `b` serves on. A replacement starts `a` again.
pub(crate) async fn stopped_by_an_operator(stage: &Stage) {
    let set = connect([stage.stub("a"), stage.stub("b")]).await;
    let (a, b) = (handle(&set, "a"), handle(&set, "b"));
    let_the_test_look(stage, "up");
    assert!(a.is_ended() && stage.alive("a").is_empty());
    let refused = ask_pid(&a).await.expect_err("it was stopped");
    assert!(matches!(refused, CallError::Ended { why: EndedWhy::Stopped, .. }), "{refused:?}");
    ask_pid(&b).await.expect("it serves on");
    assert_eq!((stage.pids("a").len(), stage.registered()), (1, 1));
    let again = set.replace([stage.stub("a"), stage.stub("b")]).await.expect("both come up");
    assert_eq!((&*again.started, &*again.kept), (&["a".to_owned()][..], &["b".to_owned()][..]));
    assert_eq!(stage.registered(), 2);
    assert_verified(&set.shutdown().await, 2);
    assert_eq!(stage.registered(), 0, "a shutdown removes the files");
}

/// A server is listed for as long as it has a process, and each of its processes anew.
pub(crate) async fn while_it_has_a_process(stage: &Stage) {
    let idle = std::time::Duration::from_millis(50);
    let lazy = stage.stub("lazy").start(moored_client::Start::AtFirstCall).idle_stop(idle);
    let set = connect([lazy]).await;
    assert_eq!(stage.registered(), 0, "it has no process yet");
    for _ in 0..2 {
        ask_pid(&handle(&set, "lazy")).await.expect("it is woken");
        assert!(stage.registered() <= 1);
        blocking(|| {
            wait_until("it sleeps", DEADLINE, || (stage.registered() == 0).then_some(()));
        });
        stage.wait_until_alive("lazy", 0);
    }
    assert_eq!(stage.pids("lazy").len(), 2);
}

/// A host that does not want its servers to be listed.
pub(crate) async fn not_at_all(stage: &Stage) {
    let options = SetOptions::default().registration(Registration::Off);
    let set = ServerSet::connect([stage.stub("a")], options).await.expect("one name");
    assert!(set.failures().is_empty(), "{:?}", set.failures());
    assert_eq!(stage.registered(), 0);
    let_the_test_look(stage, "up");
}

/// There is no runtime folder to be had: the servers run all the same.
pub(crate) async fn nowhere_to_register(stage: &Stage) {
    fs::write(stage.runtime_folder(), "no folder").expect("a file in its place");
    let set = connect([stage.stub("a")]).await;
    ask_pid(&handle(&set, "a")).await.expect("it serves");
    assert_verified(&set.shutdown().await, 1);
}
