//! The host in `tests/scenarios.rs`: plays one scenario with real servers, checks from inside what a host can see, and
//! exits. What is left of it then is for the test to look at, from outside.
//!
//! ```text
//! scenario_host SCENARIO STUB_SERVER MISBEHAVE FOLDER
//! ```
#![expect(clippy::print_stderr, reason = "a test program's own words")]

mod scenarios;

use std::process::ExitCode;

use scenarios::{Stage, bad_servers, ends, given_up, listed, lives, pipes, replacing, runtimes, shortages};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [scenario, stub, misbehave, folder] = &args[..] else {
        eprintln!("usage: scenario_host SCENARIO STUB_SERVER MISBEHAVE FOLDER");
        return ExitCode::from(2);
    };
    let stage = Stage::new(stub, misbehave, folder);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    match &**scenario {
        "drop-on-one-thread" => ends::drop_on_the_only_thread(&stage),
        "drop-without-runtime" => ends::drop_without_the_runtime(&stage, runtime),
        "transport-without-runtime" => ends::transport_without_the_runtime(&stage, runtime),
        "runtime-per-refresh" => runtimes::a_runtime_per_refresh(&stage),
        "runtime-nobody-runs" => runtimes::a_runtime_that_nobody_runs(&stage),
        "turn-nobody-gives-back" => runtimes::a_turn_that_nobody_gives_back(&stage),
        "drop-is-reported" => runtimes::drop_is_reported(&stage, runtime),
        "transport-drop-is-reported" => runtimes::transport_drop_is_reported(&stage, runtime),
        other => runtime.block_on(play(other, &stage)),
    }
    ExitCode::SUCCESS
}

async fn play(scenario: &str, stage: &Stage) {
    match scenario {
        "s13" => replacing::replaced_while_referenced(stage).await,
        "s14" => replacing::edited(stage).await,
        "s15" => replacing::rebuilt_at_start(stage).await,
        "failed-replace" => replacing::failed(stage).await,
        "cancelled-replace" => replacing::cancelled(stage).await,
        "s16" => lives::sessions_without_an_end(stage).await,
        "s18" => lives::reconnected(stage).await,
        "s20" => lives::thirty_subagents(stage).await,
        "lazy" => lives::lazy(stage).await,
        "idle" => lives::idle_only_when_unused(stage).await,
        "handler" => lives::heard_by_the_host(stage).await,
        "replaced-while-starting" => lives::replaced_while_starting_again(stage).await,
        "s17" => bad_servers::never_answers(stage).await,
        "s19" => bad_servers::crashes_at_start(stage).await,
        "crash-loop" => bad_servers::crashes_after_each_call(stage).await,
        "exits-for-good" => bad_servers::exits_for_good(stage).await,
        "stubborn" => bad_servers::stubborn(stage).await,
        "daemons" => bad_servers::forks_daemons(stage).await,
        "given-up" => ends::connecting_is_given_up(stage).await,
        "dropped-in-flight" => ends::dropped_in_flight(stage).await,
        "shutdown-while-replacing" => ends::shutdown_while_replacing(stage).await,
        "handler-panics" => runtimes::a_handler_that_panics(stage).await,
        "shutdown-given-up" => runtimes::shutdown_is_given_up(stage).await,
        "values-without-bound" => runtimes::values_without_bound(stage).await,
        "over-limit" => runtimes::more_than_the_limit(stage).await,
        "deaf" => pipes::deaf(stage).await,
        "never-reads" => pipes::never_reads(stage).await,
        "floods" => pipes::floods(stage).await,
        "goes-in-the-middle" => pipes::goes_in_the_middle(stage).await,
        "connects-given-up" => given_up::connects(stage).await,
        "replacements-given-up" => given_up::replacements(stage).await,
        "everything-at-once" => given_up::everything_at_once(stage).await,
        "no-more-files" => shortages::no_more_files(stage).await,
        "no-more-threads" => shortages::no_more_threads(stage).await,
        "queued" => given_up::queued(stage).await,
        "sleepy" => given_up::sleepy(stage).await,
        "two-hundred" => shortages::two_hundred(stage).await,
        "listed" => listed::until_dropped(stage).await,
        "listed-and-stopped" => listed::stopped_by_an_operator(stage).await,
        "listed-while-awake" => listed::while_it_has_a_process(stage).await,
        "not-listed" => listed::not_at_all(stage).await,
        "nowhere-to-register" => listed::nowhere_to_register(stage).await,
        "transport" => ends::transport(stage).await,
        other => panic!("unknown scenario `{other}`"),
    }
}
