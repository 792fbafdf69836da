//! The same driver as `refresh_daemon`, over rmcp's own `TokioChildProcess`: the comparison.
//!
//! Its connection manager is what one writes first: a list of connections in `Arc`s, which is replaced as a whole. A
//! connection closes when its last clone is gone, and rmcp ends the process then, in a task of its own. `--in-flight` keeps
//! the clones on which calls were in flight, as `refresh_daemon` does. `--by` is not for this one.
#![expect(clippy::print_stderr, reason = "a program's own words")]

mod daemon;

use std::process::ExitCode;
use std::sync::Arc;

use daemon::{Calls, Everybody, Options, Problem};
use moored_containment::ProcessIdentity;
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use tokio::process::Command;
use tokio::runtime::Builder;

type Client = Arc<RunningService<RoleClient, ()>>;

fn main() -> ExitCode {
    let lived = Options::parse(std::env::args().skip(1)).and_then(|options| {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(live(&options))
    });
    match lived {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("rmcp_daemon: {problem}");
            ExitCode::FAILURE
        }
    }
}

async fn live(options: &Options) -> Result<(), Problem> {
    let (mut everybody, mut escaped) = (Everybody::default(), Vec::new());
    let (mut manager, first) = connect(options, 0).await?;
    everybody.refreshed(first)?;
    for refresh in 1..=options.refreshes {
        if options.in_flight {
            escaped.extend(call_everyone(options, &manager).await?);
        }
        let (next, newcomers) = connect(options, refresh).await?;
        manager = next;
        let count = everybody.refreshed(newcomers)?;
        options.report(refresh, count, Calls::default())?;
    }
    if options.end == "hold" {
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
    }
    drop((manager, escaped));
    Ok(())
}

async fn call_everyone(options: &Options, manager: &[Client]) -> Result<Vec<Client>, Problem> {
    for client in manager {
        let tools = client.list_all_tools().await?;
        let Some(call) = options.call(&tools) else { continue };
        let clone = client.clone();
        tokio::spawn(async move { clone.call_tool(call).await });
        client.list_all_tools().await?;
    }
    Ok(manager.to_vec())
}

async fn connect(options: &Options, refresh: u64) -> Result<(Vec<Client>, Vec<ProcessIdentity>), Problem> {
    let (mut clients, mut processes) = (Vec::new(), Vec::new());
    for argv in &options.servers {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).env("REFRESH", refresh.to_string());
        let transport = TokioChildProcess::new(command)?;
        processes.push(ProcessIdentity::of(transport.id().ok_or("it has ended")?)?);
        clients.push(Arc::new(().serve(transport).await?));
    }
    Ok((clients, processes))
}
