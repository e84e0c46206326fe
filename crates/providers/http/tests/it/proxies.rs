//! Proxies.

use std::process::Command;

use formwork_http::{ConfigError, HttpTransport};
use formwork_testkit::server::Reply;

use crate::support::{ask, server};

#[tokio::test]
async fn a_proxy_is_asked_for_the_whole_address() {
    let proxy = server([Reply::status(200).with_body("one\n.\n")]);
    let address = proxy.url().replace("http://", "http://user:secret@");
    let transport = HttpTransport::new("http://api.example/v1").unwrap().with_proxy(&address).unwrap();
    assert_eq!(ask(transport).await.unwrap().text, "one");
    assert_eq!(proxy.received()[0].path, "http://api.example/v1/chat");
    assert!(proxy.received()[0].header("proxy-authorization").is_some());
}

#[test]
fn what_is_no_proxy_is_refused() {
    for wrong in ["", "proxy:8080", "socks5://proxy", "http://"] {
        let error = HttpTransport::new("http://h").unwrap().with_proxy(wrong).unwrap_err();
        assert_eq!(error, ConfigError::Proxy, "{wrong}");
    }
}

/// The test runs itself in a new process, because changing the environment of a process with threads is unsafe.
#[tokio::test]
async fn the_environments_proxy_is_not_asked_for_servers_on_this_machine() {
    const LOCAL: &str = "FORMWORK_TEST_LOCAL_SERVER";
    if let Ok(local) = std::env::var(LOCAL) {
        ask(HttpTransport::new(&local).unwrap()).await.unwrap();
        ask(HttpTransport::new("http://api.example").unwrap()).await.unwrap();
        return;
    }
    let reply = || Reply::status(200).with_body("one\n.\n");
    let (proxy, local) = (server([reply()]), server([reply()]));
    let name = "proxies::the_environments_proxy_is_not_asked_for_servers_on_this_machine";
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([name, "--exact"]).env(LOCAL, local.url()).env("HTTP_PROXY", proxy.url());
    for variable in ["http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "REQUEST_METHOD"] {
        again.env_remove(variable);
    }
    let output = again.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let paths = |received: Vec<formwork_testkit::server::Received>| {
        received.into_iter().map(|request| request.path).collect::<Vec<_>>()
    };
    assert_eq!(paths(local.received()), ["/chat"]);
    assert_eq!(paths(proxy.received()), ["http://api.example/chat"]);
}
