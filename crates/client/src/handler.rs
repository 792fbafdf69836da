//! The host's own side of a connection, with its type erased, so that one set can have another handler for each server.
//!
//! A type of our own rather than rmcp's box: the compiler does not see that a future which holds that box is `Send`.

use rmcp::model::{ClientResult, ServerNotification, ServerRequest};
use rmcp::service::{DynService, NotificationContext, RequestContext, ServiceExt as _};
use rmcp::{ErrorData, RoleClient, Service};

/// The host's handler for one server; see [`SetOptions::handler`](crate::SetOptions::handler).
///
/// ```
/// # use moored_client::{ServerSet, ServerSpec, SetOptions};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let specs = [ServerSpec::new("echo", "sh").arg("examples/echo_server.sh")];
/// # let set = ServerSet::connect(specs, SetOptions::default()).await?;
/// use moored_client::AnyHandler;
/// use rmcp::Service as _;
///
/// let lease = set.server("echo").expect("it came up").lease().await?;
/// let handler: &AnyHandler = lease.service();
/// assert!(!handler.get_info().client_info.name.is_empty(), "what the server was told of this host");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AnyHandler(Box<dyn DynService<RoleClient>>);

impl AnyHandler {
    pub(crate) fn new(service: impl Service<RoleClient>) -> Self {
        Self(service.into_dyn())
    }
}

impl Service<RoleClient> for AnyHandler {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        DynService::handle_request(&*self.0, request, context).await
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        DynService::handle_notification(&*self.0, notification, context).await
    }

    fn get_info(&self) -> <RoleClient as rmcp::service::ServiceRole>::Info {
        DynService::get_info(&*self.0)
    }
}

impl std::fmt::Debug for AnyHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AnyHandler")
    }
}
