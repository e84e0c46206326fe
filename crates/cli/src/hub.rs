//! Downloads model files from a model hub over HTTP.

use std::env;
use std::io::Write;
use std::sync::Arc;

use formwork::http::{HttpTransport, Key};
use formwork_local::Hub;

/// The address of the hub, unless `HF_ENDPOINT` is set.
const ENDPOINT: &str = "https://huggingface.co";

/// The hub at `HF_ENDPOINT`, with the token of `HF_TOKEN` if that is set.
pub(crate) fn hub() -> Arc<dyn Hub> {
    Arc::new(Web)
}

struct Web;

impl Hub for Web {
    fn download(
        &self,
        path: &str,
        to: &mut (dyn Write + Send),
        progress: &mut (dyn FnMut(u64, Option<u64>) + Send),
    ) -> Result<(), String> {
        let transport = transport().map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("the runtime cannot be started: {error}"))?;
        runtime.block_on(transport.download(path, to, progress)).map_err(|error| error.to_string())?;
        Ok(())
    }
}

fn transport() -> Result<HttpTransport, formwork::http::ConfigError> {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let transport = HttpTransport::new(&set("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned()))?;
    match set("HF_TOKEN") {
        Some(_) => transport.with_key(formwork::wire::Auth::BEARER, Key::from_env("HF_TOKEN")?),
        None => Ok(transport),
    }
}
