//! What `get_server_info` says of a wrapped server: itself, and the other instances of it on this machine.

use std::time::Duration;

use moored_containment::RuntimeDir;
use serde_json::{Value, json};

use moored_registry::control::{Reply, Request, RunState, Status};
use moored_registry::{RegisteredRun, RunInfo};

/// Up to so many instances are healthy, where no limit is set.
const HEALTHY: u32 = 9;
const ANSWER: Duration = Duration::from_millis(300);

/// Asks the other instances, so it may take a moment.
pub(super) fn server_info(folder: Option<&RuntimeDir>, own: &RunInfo, status: &Status) -> Value {
    let mut processes = vec![process(own, Some(status), true)];
    let others = folder.and_then(|folder| RegisteredRun::all(folder).ok()).unwrap_or_default();
    for other in others.iter().filter(|o| o.info.server_key == own.server_key && o.info.run != own.run) {
        let status = match other.ask(&Request::Status, ANSWER) {
            Ok(Reply::Status(status)) => Some(status),
            _ => None,
        };
        // One that sleeps has no process.
        if status.as_ref().is_none_or(|status| status.server.is_some()) {
            processes.push(process(&other.info, status.as_deref(), false));
        }
    }
    let limit = own.max_instances.unwrap_or(HEALTHY) as usize;
    let uptime = own.age();
    json!({
        "success": true,
        "server_version": status.server_version,
        "build_date": null,
        "current_pid": status.server.map(|server| server.pid),
        "current_uptime_seconds": uptime.as_secs(),
        "current_uptime_formatted": formatted(uptime),
        "total_server_processes": processes.len(),
        "health": if processes.len() <= limit { "healthy" } else { "degraded" },
        "server_processes": processes,
        "pid_file": pid_file(own),
    })
}

fn process(facts: &RunInfo, status: Option<&Status>, is_current: bool) -> Value {
    let uptime = facts.age();
    json!({
        "pid": status.and_then(|status| status.server).map_or(facts.moored.pid, |server| server.pid),
        "is_current": is_current,
        "uptime_seconds": uptime.as_secs(),
        "uptime_formatted": formatted(uptime),
        "status": status.map_or(RunState::Starting, |status| status.state),
    })
}

/// `1h 0m`, `12m 3s`, `9s`.
fn formatted(uptime: Duration) -> String {
    let seconds = uptime.as_secs();
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, s) => format!("{m}m {s}s"),
        (0, h, m, _) => format!("{h}h {m}m"),
        (d, h, _, _) => format!("{d}d {h}h"),
    }
}

fn pid_file(facts: &RunInfo) -> Value {
    let Some(path) = &facts.pid_file else { return Value::Null };
    let text = super::pid_file::read(path).ok();
    let line = |n| text.as_ref().and_then(|text| text.lines().nth(n)).map(str::to_owned);
    json!({
        "path": path,
        "exists": text.is_some(),
        "pid": line(0).and_then(|pid| pid.parse::<u32>().ok()),
        "version": line(1),
        "started_at": line(2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uptime_reads_as_people_say_it() {
        let say = |seconds| formatted(Duration::from_secs(seconds));
        assert_eq!([say(9), say(723), say(3600), say(90_000)], ["9s", "12m 3s", "1h 0m", "1d 1h"]);
    }
}
