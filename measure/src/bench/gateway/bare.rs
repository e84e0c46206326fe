//! The peer of the comparison: axum's proxy example. It reads the body of the request, as every gateway must, and does not parse,
//! check, limit or count anything.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, Uri};
use axum::response::IntoResponse as _;
use axum::routing::post;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::Failure;
use crate::bench::process;

/// The client, and the URL that it calls.
pub(super) type Upstream = (Client<HttpConnector, Body>, &'static str);

pub(super) fn upstream(url: &str) -> Upstream {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    (client, format!("{url}/chat/completions").leak())
}

pub(in crate::bench) async fn serve(url: &str) -> Result<(), Failure> {
    let router = Router::new().route("/v1/chat/completions", post(pass)).with_state(upstream(url));
    Ok(axum::serve(process::listen().await?, router).await?)
}

async fn pass(State((client, url)): State<Upstream>, request: Request) -> Response<Body> {
    let passed = async {
        let (mut head, body) = request.into_parts();
        let body = to_bytes(body, 16 << 20).await?;
        head.uri = Uri::from_static(url);
        head.headers.remove("host");
        let response = client.request(Request::from_parts(head, Body::from(body))).await?;
        Ok::<_, Failure>(response.into_response())
    };
    passed.await.unwrap_or_else(|_| StatusCode::BAD_GATEWAY.into_response())
}
