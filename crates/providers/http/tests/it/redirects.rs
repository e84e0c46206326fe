//! Keys are sent to one server only.

use formwork_core::FaultKind::BadWire;
use formwork_http::Key;
use formwork_testkit::server::Reply;
use formwork_wire::Auth;

use crate::support::{ask, assert_fault, get, server, transport};

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = server([Reply::status(200)]);
    for status in [301, 302, 303, 307, 308] {
        let server = server([Reply::redirect(format!("{}/here", elsewhere.url())).with_status(status)]);
        let key = Key::new("the test", "sk-very-secret-0123456789").unwrap();
        let transport = transport(&server).with_key(Auth::BEARER, key).unwrap();
        let fault = ask(transport.clone()).await.unwrap_err();
        assert_fault(&fault, BadWire, &["redirects to", &elsewhere.url(), "base URL"]);
        assert_eq!(fault.status, Some(status));
        // The transport itself returns the response unchanged.
        assert_eq!(get(&transport, "/", None).await.unwrap().status().as_u16(), status);
        assert_eq!(server.received()[0].header("authorization"), Some("Bearer sk-very-secret-0123456789"));
    }
    assert_eq!((elsewhere.connections(), elsewhere.received().len()), (0, 0));
}
