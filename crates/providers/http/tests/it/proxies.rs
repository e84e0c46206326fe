//! Proxies.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

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

/// A SOCKS5 proxy (RFC 1928) without authentication for one connection: returns its address, and the destination that it is asked for.
fn socks(target: SocketAddr) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut read = |count: usize| {
            let mut bytes = vec![0; count];
            client.read_exact(&mut bytes).unwrap();
            bytes
        };
        let methods = read(2)[1];
        read(methods.into());
        client.write_all(&[5, 0]).unwrap();
        let mut read = |count: usize| {
            let mut bytes = vec![0; count];
            client.read_exact(&mut bytes).unwrap();
            bytes
        };
        let head = read(4);
        assert_eq!(head[..2], [5, 1], "a connection is asked for");
        // 3 is the type of names: they are not looked up on this machine.
        let name = if head[3] == 3 {
            let length = read(1)[0];
            read(length.into())
        } else {
            read(4)
        };
        read(2);
        sender.send(String::from_utf8_lossy(&name).into_owned()).unwrap();
        client.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0]).unwrap();
        let mut server = TcpStream::connect(target).unwrap();
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let _ = std::io::copy(&mut server, &mut client);
    });
    (address, receiver)
}

#[tokio::test]
async fn a_socks_proxy_connects_to_the_name_of_the_server() {
    let target = server([Reply::status(200).with_body("one\n.\n")]);
    let port = target.url().rsplit_once(':').unwrap().1.trim_end_matches('/').parse().unwrap();
    let (proxy, asked) = socks(SocketAddr::from(([127, 0, 0, 1], port)));
    let transport = HttpTransport::new("http://api.example/v1").unwrap();
    let transport = transport.with_proxy(&format!("socks5h://{proxy}")).unwrap();
    assert_eq!(ask(transport).await.unwrap().text, "one");
    assert_eq!(asked.recv().unwrap(), "api.example");
    assert_eq!(target.received()[0].path, "/v1/chat");
}

#[test]
fn what_is_no_proxy_is_refused() {
    for wrong in ["", "proxy:8080", "socks4://proxy", "ftp://proxy", "http://"] {
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
