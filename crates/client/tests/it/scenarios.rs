//! The leak scenarios at the level of the library, each in a host of its own (`examples/scenario_host.rs`), as every user
//! there is. The host checks what it can see; this checks that nothing of it is left.

use crate::host::{Host, stub};
use moored_testkit::{User, bin};

/// Its sets are never dropped: the end of the process has to do.
const FORGETS_ITS_SETS: &str = "s16";

#[track_caller]
fn play(scenario: &str) {
    for user in User::available() {
        let misbehave = bin("misbehave");
        let mut host = Host::start(
            user,
            "scenario_host",
            &[scenario.into(), stub().into(), misbehave.into(), "{}".into()],
        );
        host.assert_ends_with(0);
        host.assert_nothing_left();
        if scenario == FORGETS_ITS_SETS {
            // What was forgotten is not removed by its host; the next look does.
            assert!(host.moored(&["ps"]).status.success());
        }
        assert!(host.registrations().is_empty(), "{scenario}: {:?}", host.registrations());
    }
}

macro_rules! scenarios {
    ($($name:ident: $scenario:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            play($scenario);
        })*
    };
}

scenarios! {
    s13_a_generation_that_is_still_referenced_ends_after_its_call_in_flight: "s13",
    s14_only_the_edited_server_is_replaced: "s14",
    s15_a_rebuild_at_start_leaves_one_instance: "s15",
    s16_sessions_that_nobody_ends_hold_no_process: "s16",
    s17_a_server_that_never_answers_is_gone_before_the_next_attempt: "s17",
    s18_a_reconnect_leaves_no_previous_child: "s18",
    s19_a_crash_loop_is_slowed_down_and_calls_are_refused_at_once: "s19",
    heavy_s20_parallel_subagents_stay_under_the_limit: "s20",
    a_failed_replacement_leaves_the_old_generation_serving: "failed-replace",
    a_replacement_nobody_waits_for_is_finished: "cancelled-replace",
    a_lazy_server_is_started_once_by_its_first_call: "lazy",
    a_server_in_use_does_not_sleep: "idle",
    the_hosts_own_handler_hears_every_server: "handler",
    a_server_that_starts_again_does_not_hold_up_its_replacement: "replaced-while-starting",
    a_server_that_crashes_is_restarted: "crash-loop",
    a_server_that_is_not_restarted_says_so: "exits-for-good",
    servers_that_ignore_eof_and_term_are_killed_all_at_once: "stubborn",
    servers_that_fork_daemons_leave_none: "daemons",
    connecting_can_be_given_up: "given-up",
    calls_in_flight_are_told_of_a_drop: "dropped-in-flight",
    a_shutdown_does_not_wait_for_a_replacement: "shutdown-while-replacing",
    a_set_can_be_dropped_on_the_only_thread: "drop-on-one-thread",
    a_set_can_be_dropped_without_its_runtime: "drop-without-runtime",
    a_transport_ends_its_server: "transport",
    a_transport_needs_no_runtime_to_end: "transport-without-runtime",
    a_transport_that_is_dropped_tells_how_its_server_ended: "transport-drop-is-reported",
    a_set_that_is_dropped_tells_how_its_servers_ended: "drop-is-reported",
    a_runtime_for_each_refresh_leaves_no_earlier_generation: "runtime-per-refresh",
    servers_of_a_runtime_that_nobody_runs_end_in_time: "runtime-nobody-runs",
    a_shutdown_waits_for_no_turn_that_nobody_gives_back: "turn-nobody-gives-back",
    a_handler_that_panics_leaves_no_process: "handler-panics",
    a_shutdown_that_was_given_up_is_finished: "shutdown-given-up",
    values_without_bound_are_just_long: "values-without-bound",
    more_servers_than_the_limit_are_refused_at_once: "over-limit",
    a_server_that_closes_its_input_is_ended_and_calls_are_told: "deaf",
    a_server_that_never_reads_holds_up_nothing: "never-reads",
    servers_that_flood_do_not_keep_others_from_being_served: "floods",
    a_server_that_goes_in_the_middle_of_a_call_is_told_of: "goes-in-the-middle",
    connects_given_up_at_any_moment_leave_nothing: "connects-given-up",
    replacements_given_up_at_any_moment_leave_one_generation: "replacements-given-up",
    a_host_without_files_ends_what_it_has: "no-more-files",
    a_host_without_threads_drops_all_servers_at_once: "no-more-threads",
    a_server_is_registered_for_as_long_as_it_has_a_process: "listed-while-awake",
    a_server_that_cannot_be_registered_runs_all_the_same: "nowhere-to-register",
    a_server_that_waits_for_its_turn_is_not_started_after_a_shutdown: "queued",
    heavy_a_call_is_not_lost_to_a_server_that_went_to_sleep: "sleepy",
    heavy_two_hundred_servers_are_gone_at_once: "two-hundred",
    heavy_replacements_restarts_and_calls_at_once_all_end: "everything-at-once",
}
