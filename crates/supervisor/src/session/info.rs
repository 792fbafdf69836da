//! Who `get_server_info` of a wrapped server is about: this session, and the other instances of its server, which are asked. What
//! is answered is `moored_registry`'s `ServerInfo`.

use std::time::Duration;

use moored_containment::RuntimeDir;
use moored_registry::control::{Reply, Request, Status};
use moored_registry::{Instance, PidFileInfo, RegisteredRun, RunInfo, ServerInfo, Told};
use serde_json::{Value, json};

const STATUS_REPLY_TIMEOUT: Duration = Duration::from_millis(300);

/// Asks the other instances, so it may take a moment.
pub(super) fn server_info(folder: Option<&RuntimeDir>, own: &RunInfo, status: &Status) -> Value {
    let others = folder.and_then(|folder| RegisteredRun::all(folder).ok()).unwrap_or_default();
    let is_same =
        |other: &RegisteredRun| other.info.server_key == own.server_key && other.info.run != own.run;
    let asked = others.iter().filter(|other| is_same(other)).map(|other| {
        let answer = other.ask(&Request::Status, STATUS_REPLY_TIMEOUT);
        let status = match &answer {
            Ok(Reply::Status(status)) => Some(&**status),
            _ => None,
        };
        Instance::new(&other.info, status)
    });
    let told = Told {
        version: status.server_version.clone(),
        stale: status.stale.is_some(),
        build_date: None,
        pid_file: own.pid_file.as_deref().map(PidFileInfo::read),
    };
    json!(ServerInfo::new(&Instance::new(own, Some(status)), asked, told))
}
