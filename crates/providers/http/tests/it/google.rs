//! Google's application default credentials: the key of a service account. The key was made for this test and opens nothing.

use std::process::Command;

use formwork_core::FaultKind::Auth as NotAuthorised;
use formwork_http::{GoogleCredentials, HttpTransport};
use formwork_testkit::server::Reply;

use crate::support::{ask, assert_fault, server};

/// The test runs itself in a new process, because changing the environment of a process with threads is unsafe.
#[tokio::test]
async fn a_service_account_signs_for_a_token_that_is_sent_until_it_expires() {
    const API: &str = "FORMWORK_TEST_API";
    if let Ok(api) = std::env::var(API) {
        let transport = HttpTransport::new(&api).unwrap().with_credentials(GoogleCredentials::new());
        let fault = ask(transport.clone()).await.unwrap_err();
        assert_fault(&fault, NotAuthorised, &["401", "[redacted]"]);
        assert!(!fault.message.contains("a-token-of-google"), "{fault}");
        ask(transport).await.unwrap();
        return;
    }
    let token = r#"{"access_token": "a-token-of-google", "expires_in": 3600, "token_type": "Bearer"}"#;
    let issuer = server([Reply::status(200).with_body(token)]);
    let refusal = Reply::status(401).with_body("the token a-token-of-google is not allowed here");
    let api = server([refusal, Reply::status(200).with_body("one\n.\n")]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.json");
    let account = include_str!("../service-account.json").replace("TOKEN_URI", &issuer.url());
    std::fs::write(&file, account).unwrap();
    let name = "google::a_service_account_signs_for_a_token_that_is_sent_until_it_expires";
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([name, "--exact"]).env(API, api.url()).env("GOOGLE_APPLICATION_CREDENTIALS", file);
    let output = again.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let sent: Vec<String> =
        api.received().iter().map(|request| request.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer a-token-of-google", "Bearer a-token-of-google"]);
    assert_eq!(issuer.received().len(), 1, "one token is for both requests");
}
