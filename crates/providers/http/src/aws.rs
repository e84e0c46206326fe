use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{Fault, FaultKind};
use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use ini::Ini;
use reqsign_aws_v4::{AssumeRoleCredentialProvider, Credential, DefaultCredentialProvider, RequestSigner};
use reqsign_core::hash::hex_sha256;
use reqsign_core::{
    CommandExecute, CommandOutput, Context, Error, FileRead, HttpSend, OsEnv, ProvideCredential, Signer,
};
use reqwest::Url;
use tokio::process::Command;

use crate::client::{Kept, client, request_of};
use crate::fault::before_head;
use crate::secrets::SentSecrets;
use crate::settings::Settings;
use crate::{Credentials, HttpTransport};

/// AWS's signatures (Signature Version 4), with the credentials of the standard chain.
///
/// The chain is, in this order: the variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, unless a profile is
/// named; a role of the profile (`role_arn` with `source_profile`), the profile in `~/.aws/credentials` and `~/.aws/config`, its single
/// sign-on, a web identity (`AWS_WEB_IDENTITY_TOKEN_FILE`), its `credential_process`, the container's, and the machine's (IMDSv2). The profile is that
/// of `AWS_PROFILE`, else `default`. Credentials are renewed before they expire.
///
/// ```
/// use formwork_http::{AwsCredentials, HttpTransport};
///
/// let transport = HttpTransport::new("https://bedrock-runtime.eu-west-1.amazonaws.com")?;
/// let credentials = AwsCredentials::new("bedrock", "eu-west-1", None, &transport);
/// let transport = transport.with_credentials(credentials);
/// # let _ = transport;
/// # Ok::<(), formwork_http::ConfigError>(())
/// ```
pub struct AwsCredentials {
    signer: Signer<Credential>,
    profile: Option<String>,
    /// The reason for which there is no role: the chain goes on with other sources.
    no_role: Arc<Mutex<Option<String>>>,
    known: SentSecrets,
}

impl AwsCredentials {
    /// Returns the credentials for a service, such as `bedrock`, in a region. `profile` replaces that of the environment. Requests for
    /// credentials use the proxy and the certificates of `transport`.
    pub fn new(service: &str, region: &str, profile: Option<&str>, transport: &HttpTransport) -> Self {
        let context = Context::new()
            .with_env(OsEnv)
            .with_file_read(Files)
            .with_command_execute(Commands)
            .with_http_send(Network::like(transport.settings()));
        Self::of(context, service, region, profile)
    }

    fn of(context: Context, service: &str, region: &str, profile: Option<&str>) -> Self {
        let chain = DefaultCredentialProvider::builder();
        // A profile that is named by the user takes precedence over the environment, as in AWS's command.
        let chain = match profile {
            Some(name) => chain.with_profile(name).no_env(),
            None => chain,
        };
        let no_role = Arc::default();
        let role = Role {
            profile: profile.map(str::to_owned),
            region: region.to_owned(),
            failed: Arc::clone(&no_role),
        };
        let chain = chain.build().push_front(role);
        Self {
            signer: Signer::new(context, chain, RequestSigner::new(service, region)),
            profile: profile.map(str::to_owned),
            no_role,
            known: SentSecrets::default(),
        }
    }
}

#[async_trait]
impl Credentials for AwsCredentials {
    async fn authorize(&self, request: &mut Parts, body: &Bytes, _: Option<&HeaderMap>) -> Result<(), Fault> {
        let failed = |error: String| {
            let profile =
                self.profile.as_ref().map(|name| format!(" (profile `{name}`)")).unwrap_or_default();
            let message = format!(
                "AWS credentials{profile} cannot be used: {error}; see `aws sts get-caller-identity`, or set AWS_ACCESS_KEY_ID and \
                 AWS_SECRET_ACCESS_KEY"
            );
            Fault::new(FaultKind::Auth, message)
        };
        // Only these headers are signed, because a proxy may change others.
        let (mut signed, ()) = Request::new(()).into_parts();
        signed.method = request.method.clone();
        signed.uri = doubly_encoded(&request.uri).map_err(|error| failed(error.to_string()))?;
        let digest = HeaderValue::try_from(hex_sha256(body)).map_err(|error| failed(error.to_string()))?;
        signed.headers.insert("x-amz-content-sha256", digest);
        self.signer.sign(&mut signed, None).await.map_err(|error| {
            let no_role = self.no_role.lock().unwrap_or_else(PoisonError::into_inner).take();
            failed(no_role.unwrap_or_else(|| error.to_string()))
        })?;
        signed.headers.remove(HOST);
        if let Some(token) = signed.headers.get("x-amz-security-token").and_then(|token| token.to_str().ok())
        {
            self.known.add(token);
        }
        crate::header::add(&mut request.headers, &signed.headers);
        Ok(())
    }

    fn redact(&self, text: &str) -> String {
        self.known.redact(text)
    }
}

formwork_core::debug_fields!(AwsCredentials { profile });

/// Returns a URI whose path is percent-encoded once more. All services but S3 sign the path that way; `reqsign` is written for S3, and
/// signs the path as it is sent. A model's identifier contains `:`, which is sent as `%3A` and signed as `%253A`.
fn doubly_encoded(uri: &Uri) -> Result<Uri, http::Error> {
    let mut parts = uri.clone().into_parts();
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    parts.path_and_query = Some(format!("{}{query}", uri.path().replace('%', "%25")).parse()?);
    Ok(Uri::from_parts(parts)?)
}

/// The role of a profile: `role_arn`, taken with the credentials of `source_profile` or of `credential_source`.
#[derive(Debug)]
struct Role {
    profile: Option<String>,
    region: String,
    failed: Arc<Mutex<Option<String>>>,
}

impl ProvideCredential for Role {
    type Credential = Credential;

    async fn provide_credential(&self, context: &Context) -> Result<Option<Credential>, Error> {
        let found = self.take(context).await;
        let failed = found.as_ref().err().map(|error| format!("the role of the profile: {error}"));
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
        found
    }
}

impl Role {
    async fn take(&self, context: &Context) -> Result<Option<Credential>, Error> {
        if self.profile.is_none() && context.env_var("AWS_ACCESS_KEY_ID").is_some() {
            return Ok(None);
        }
        let named = self.profile.clone().or_else(|| context.env_var("AWS_PROFILE"));
        let profile = named.as_deref().unwrap_or("default");
        let file = context.env_var("AWS_CONFIG_FILE").unwrap_or_else(|| "~/.aws/config".to_owned());
        let Some(file) = context.expand_home_dir(&file) else { return Ok(None) };
        let Ok(text) = context.file_read_as_string(&file).await else { return Ok(None) };
        let ini = Ini::load_from_str_noescape(&text)
            .map_err(|error| Error::config_invalid(format!("{file}: {error}")))?;
        let section = match profile {
            "default" => "default".to_owned(),
            other => format!("profile {other}"),
        };
        let Some(section) = ini.section(Some(section)) else { return Ok(None) };
        let Some(role) = section.get("role_arn") else { return Ok(None) };
        // The service that runs the container takes a web identity's role itself.
        if section.contains_key("web_identity_token_file") {
            return Ok(None);
        }
        let source = match (section.get("source_profile"), section.get("credential_source")) {
            (Some(name), _) => {
                DefaultCredentialProvider::builder().with_profile(name).no_env().no_ecs().no_imds()
            }
            (None, Some(_)) => DefaultCredentialProvider::builder().no_profile().no_sso().no_process(),
            (None, None) => return Ok(None),
        };
        // STS has a server in each region.
        let region = section.get("region").unwrap_or(&self.region);
        let signer = Signer::new(context.clone(), source.build(), RequestSigner::new("sts", region));
        let mut provider = AssumeRoleCredentialProvider::new(role.to_owned(), signer)
            .with_region(region.to_owned())
            .with_regional_sts_endpoint()
            .with_role_session_name(section.get("role_session_name").unwrap_or("formwork").to_owned());
        if let Some(id) = section.get("external_id") {
            provider = provider.with_external_id(id.to_owned());
        }
        provider.provide_credential(context).await
    }
}

#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>, Error> {
        std::fs::read(path).map_err(|error| Error::unexpected(format!("{path}: {error}")))
    }
}

/// Runs `credential_process`.
#[derive(Debug)]
struct Commands;

impl CommandExecute for Commands {
    async fn command_execute<'a>(
        &'a self,
        program: &'a str,
        arguments: &'a [&'a str],
    ) -> Result<CommandOutput, Error> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(std::process::Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(Duration::from_secs(30), command.output()).await;
        let output = output.map_err(|_| Error::unexpected(format!("`{program}` did not end within 30 s")))?;
        let output = output.map_err(|error| Error::unexpected(format!("`{program}`: {error}")))?;
        let status = output.status.code().unwrap_or(-1);
        Ok(CommandOutput { status, stdout: output.stdout, stderr: output.stderr })
    }
}

/// The servers that give credentials: those of AWS over TLS, and those of the machine or the container without it and without a proxy.
struct Network {
    settings: Settings,
    local: Settings,
    tls: OnceLock<Result<Kept, String>>,
    plain: OnceLock<Result<Kept, String>>,
}

impl Network {
    fn like(settings: &Settings) -> Arc<Self> {
        let mut local = Settings::new(settings.base.clone());
        // Outside of AWS nobody listens there.
        (local.connect, local.is_proxied) = (Duration::from_secs(1), false);
        let settings = settings.clone();
        Arc::new(Self { settings, local, tls: OnceLock::new(), plain: OnceLock::new() })
    }
}

impl HttpSend for Network {
    async fn http_send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let failed = |error: String| Error::unexpected(error);
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string()).map_err(|error| failed(error.to_string()))?;
        let host = crate::base::host(&url);
        let kept = match url.scheme() == "http" {
            true => self.plain.get_or_init(|| client(&self.local, false)),
            false => self.tls.get_or_init(|| client(&self.settings, true)),
        };
        let kept = kept.as_ref().map_err(|error| failed(error.clone()))?;
        let request = || request_of(head.method.clone(), url.clone(), head.headers.clone(), body.clone());
        let sent = async {
            let response = kept.execute(request, true).await;
            let mut response =
                response.map_err(|error| failed(before_head(&error, &host, &self.settings).message))?;
            let mut out = Response::new(Bytes::new());
            *out.status_mut() = response.status();
            *out.headers_mut() = std::mem::take(response.headers_mut());
            *out.body_mut() = response.bytes().await.map_err(|error| failed(error.to_string()))?;
            Ok(out)
        };
        let limit = tokio::time::timeout(Duration::from_secs(30), sent).await;
        limit.unwrap_or_else(|_| Err(failed(format!("{} did not answer within 30 s", host))))
    }
}

formwork_core::debug_fields!(Network {});

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::Path;

    use reqsign_core::StaticEnv;
    use reqsign_core::hash::{hex_hmac_sha256, hmac_sha256};

    use super::*;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    /// Returns the signature of a request by the description of the algorithm in AWS's documentation ("Create a signed AWS API
    /// request"): `path` is the canonical one, `headers` are the signed ones, in order.
    fn signature(
        (method, path, headers): (&str, &str, &[(&str, &str)]),
        digest: &str,
        (date, region, service): (&str, &str, &str),
        secret: &str,
    ) -> String {
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let canonical = format!("{method}\n{path}\n\n{lines}\n{}\n{digest}", names.join(";"));
        let day = &date[..8];
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex_sha256(canonical.as_bytes()));
        let key = [day, region, service, "aws4_request"]
            .iter()
            .fold(format!("AWS4{secret}").into_bytes(), |key, part| hmac_sha256(&key, part.as_bytes()));
        hex_hmac_sha256(&key, text.as_bytes())
    }

    /// The case `get-vanilla` of AWS's test suite for Signature Version 4.
    #[test]
    fn the_tests_own_signature_is_that_of_the_published_case() {
        let headers = [("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")];
        let scope = ("20150830T123600Z", "us-east-1", "service");
        assert_eq!(
            signature(("GET", "/", &headers), &hex_sha256(b""), scope, SECRET),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
    }

    /// A server of AWS's STS.
    #[derive(Debug)]
    struct Sts;

    impl HttpSend for Sts {
        async fn http_send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
            let asked = format!("{}{}", request.uri(), String::from_utf8_lossy(request.body()));
            assert!(asked.contains("sts.eu-west-1.amazonaws.com") && asked.contains("reader"), "{asked}");
            assert!(request.headers()["authorization"].to_str().unwrap().contains("AKIDPROFILE"));
            let body = "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>AKIDROLE00000000</AccessKeyId>\
                <SecretAccessKey>role/secret</SecretAccessKey><SessionToken>the-token-of-the-role</SessionToken>\
                <Expiration>2090-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";
            Ok(Response::new(Bytes::from_static(body.as_bytes())))
        }
    }

    /// Returns credentials in an environment of these variables, in which the files of AWS are in `folder`.
    fn credentials(folder: &Path, variables: &[(&str, &str)], profile: Option<&str>) -> AwsCredentials {
        let file = |name: &str| folder.join(name).display().to_string();
        let mut envs: HashMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        envs.insert("AWS_CONFIG_FILE".to_owned(), file("config"));
        envs.insert("AWS_SHARED_CREDENTIALS_FILE".to_owned(), file("credentials"));
        envs.insert("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned());
        let env = StaticEnv { home_dir: Some(folder.to_owned()), envs };
        let context = Context::new().with_env(env).with_file_read(Files).with_command_execute(Commands);
        AwsCredentials::of(context.with_http_send(Sts), "bedrock", "eu-west-1", profile)
    }

    const BODY: Bytes = Bytes::from_static(b"{\"messages\": []}");

    async fn signed(credentials: &AwsCredentials) -> Result<Parts, Fault> {
        let uri = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.claude-v1%3A0/converse";
        let (mut parts, ()) = Request::post(uri).body(()).unwrap().into_parts();
        credentials.authorize(&mut parts, &BODY, None).await.map(|()| parts)
    }

    #[tokio::test]
    async fn requests_are_signed_with_the_credentials_of_each_source() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
        let printed = r#"{"Version": 1, "AccessKeyId": "AKIDPRINTED", "SecretAccessKey": "printed"}"#;
        write("printed.json", printed.to_owned());
        write(
            "credentials",
            "[team]\naws_access_key_id = AKIDPROFILE\naws_secret_access_key = profile/secret\n".to_owned(),
        );
        let command = format!("cat {}", folder.path().join("printed.json").display());
        write(
            "config",
            format!(
                "[profile reader]\nrole_arn = arn:aws:iam::123456789012:role/reader\nsource_profile = team\nregion = eu-west-1\n\n\
                 [profile printed]\ncredential_process = {command}\n"
            ),
        );
        let own = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
        let with_token = [own[0], own[1], ("AWS_SESSION_TOKEN", "a-token-of-a-session")];
        for (variables, profile, id, secret, token) in [
            (&own[..], None, "AKIDEXAMPLE", SECRET, None),
            (&with_token[..], None, "AKIDEXAMPLE", SECRET, Some("a-token-of-a-session")),
            (&[("AWS_PROFILE", "team")][..], None, "AKIDPROFILE", "profile/secret", None),
            (&own[..], Some("team"), "AKIDPROFILE", "profile/secret", None),
            (&[][..], Some("printed"), "AKIDPRINTED", "printed", None),
            (&[][..], Some("reader"), "AKIDROLE00000000", "role/secret", Some("the-token-of-the-role")),
        ] {
            let case = format!("{variables:?} {profile:?}");
            let credentials = credentials(folder.path(), variables, profile);
            let parts = signed(&credentials).await.unwrap();
            let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap());
            let (date, digest) = (header("x-amz-date").unwrap(), hex_sha256(&BODY));
            let mut headers = vec![
                ("host", "bedrock-runtime.eu-west-1.amazonaws.com"),
                ("x-amz-content-sha256", digest.as_str()),
                ("x-amz-date", date),
            ];
            headers.extend(token.map(|token| ("x-amz-security-token", token)));
            let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
            // What is sent as `%3A` is encoded once more in what is signed.
            let path = "/model/anthropic.claude-v1%253A0/converse";
            let expected =
                signature(("POST", path, &headers), &digest, (date, "eu-west-1", "bedrock"), secret);
            let scope = format!("{id}/{}/eu-west-1/bedrock/aws4_request", &date[..8]);
            assert_eq!(
                header("authorization").unwrap(),
                format!(
                    "AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={}, Signature={expected}",
                    names.join(";")
                ),
                "{case}"
            );
            assert!(parts.uri.path().contains("v1%3A0/converse") && header("host").is_none(), "{case}");
            assert_eq!(header("x-amz-security-token"), token, "{case}");
            let told = format!("you sent {}", token.unwrap_or("nothing"));
            assert_eq!(credentials.redact(&told).contains("[redacted]"), token.is_some(), "{case}");
        }
    }

    #[tokio::test]
    async fn without_credentials_nothing_is_signed_and_the_message_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let fault = signed(&credentials(folder.path(), &[], Some("nobody"))).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Auth);
        for words in ["profile `nobody`", "AWS_ACCESS_KEY_ID", "aws sts"] {
            assert!(fault.message.contains(words), "{fault}");
        }
    }
}
