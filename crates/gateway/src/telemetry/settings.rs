//! The settings of the exporter: the section `[telemetry]` and the environment.

use std::time::Duration;

use axum::http::HeaderName;
use formwork::config::Config;
use formwork::providers::check_telemetry;
use formwork_http::{ConfigError, HttpTransport, Key, KeySource};
use formwork_wire::Auth;
use percent_encoding::percent_decode_str;

use super::{Telemetry, TelemetryBuilder, TelemetryError};

/// The protocol of this exporter in `OTEL_EXPORTER_OTLP_PROTOCOL`.
const PROTOCOL: &str = "http/protobuf";

/// The environment: the value of a variable.
pub(super) type Variable<'v> = &'v dyn Fn(&str) -> Option<String>;

/// Returns the exporter that the environment and the section `[telemetry]` describe; `None` without a collector.
pub(super) fn read(
    config: &Config,
    variable: Variable<'_>,
) -> Result<Option<TelemetryBuilder>, TelemetryError> {
    // An empty variable counts as absent.
    let variable = &|name: &str| variable(name).filter(|value| !value.trim().is_empty());
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let [traces, metrics] = ["TRACES", "METRICS"].map(|name| Signal { name, config, variable }.transport());
    let (traces, metrics) = (traces?, metrics?);
    if traces.is_none() && metrics.is_none() {
        return Ok(None);
    }
    let own = config.telemetry();
    let mut builder = TelemetryBuilder { traces, metrics, sampling: own.sampling, ..Telemetry::builder() };
    if let Some(name) = variable("OTEL_SERVICE_NAME").or_else(|| own.service.clone()) {
        builder = builder.with_service(name);
    }
    let seconds =
        |seconds: Option<f64>| seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    if let Some(interval) = seconds(own.interval_seconds) {
        builder = builder.with_interval(interval);
    }
    if let Some(timeout) = timeout(variable)?.or(seconds(own.timeout_seconds)) {
        builder = builder.with_timeout(timeout);
    }
    Ok(Some(builder))
}

fn timeout(variable: Variable<'_>) -> Result<Option<Duration>, TelemetryError> {
    const NAME: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";

    let Some(text) = variable(NAME) else { return Ok(None) };
    match text.trim().parse() {
        Ok(milliseconds) if milliseconds > 0 => Ok(Some(Duration::from_millis(milliseconds))),
        _ => {
            Err(TelemetryError(format!("{NAME}: expected a positive number of milliseconds, found {text:?}")))
        }
    }
}

/// Traces or metrics.
struct Signal<'s> {
    name: &'static str,
    config: &'s Config,
    variable: Variable<'s>,
}

impl Signal<'_> {
    /// Returns the variable for this signal, or else the one for all signals, with its value.
    fn variable(&self, setting: &str) -> Option<(String, String)> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_{setting}", self.name);
        let general = format!("OTEL_EXPORTER_OTLP_{setting}");
        [own, general].into_iter().find_map(|name| {
            let value = (self.variable)(&name)?.trim().to_owned();
            Some((name, value))
        })
    }

    fn transport(&self) -> Result<Option<HttpTransport>, TelemetryError> {
        let below = |endpoint: &str| {
            format!("{}/v1/{}", endpoint.trim_end_matches('/'), self.name.to_ascii_lowercase())
        };
        let transport = match (self.variable("ENDPOINT"), &self.config.telemetry().endpoint) {
            (Some((variable, endpoint)), _) => {
                // The address for one signal is complete, unlike the base for all signals.
                let is_complete = variable.contains(self.name);
                let url = if is_complete { endpoint } else { below(&endpoint) };
                HttpTransport::new(&url).map_err(|error| TelemetryError(format!("{variable}: {error}")))?
            }
            (None, Some(endpoint)) => {
                HttpTransport::new(&below(endpoint)).map_err(|error| self.error("endpoint", &error))?
            }
            (None, None) => return Ok(None),
        };
        if let Some((variable, protocol)) = self.variable("PROTOCOL")
            && protocol != PROTOCOL
        {
            return Err(TelemetryError(format!(
                "{variable}: this program exports with `{PROTOCOL}`, not with `{protocol}`: unset the variable, and name the \
                 HTTP port of the collector, usually 4318, in the endpoint"
            )));
        }
        match self.variable("HEADERS") {
            Some((variable, headers)) => with_headers(transport, &variable, &headers),
            None => self.with_own_headers(transport),
        }
        .map(Some)
    }

    /// Adds the headers and the key of the section.
    fn with_own_headers(&self, mut transport: HttpTransport) -> Result<HttpTransport, TelemetryError> {
        check_telemetry(self.config).map_err(|error| TelemetryError(error.to_string()))?;
        let own = self.config.telemetry();
        for (name, value) in &own.headers {
            transport = transport.with_header(name, value).map_err(|error| self.error("headers", &error))?;
        }
        for (name, variable) in &own.secret_headers {
            let failed = |error| self.error("secret_headers", &error);
            let value = self.key(variable, Key::of_header).map_err(failed)?;
            transport = transport.with_secret_header(name, value).map_err(failed)?;
        }
        if let Some(command) = &own.api_key_command {
            let command = KeySource::command(command.iter().cloned());
            return command
                .map(|command| transport.with_credentials(command))
                .map_err(|error| self.error("api_key_command", &error));
        }
        if let Some(variable) = own.api_key_env.as_deref().filter(|variable| !variable.is_empty()) {
            let key = self.key(variable, Key::new);
            return key
                .and_then(|key| transport.with_key(Auth::BEARER, key))
                .map_err(|error| self.error("api_key_env", &error));
        }
        Ok(transport)
    }

    fn key(
        &self,
        variable: &str,
        new: impl FnOnce(String, String) -> Result<Key, ConfigError>,
    ) -> Result<Key, ConfigError> {
        match (self.variable)(variable) {
            Some(secret) => new(format!("the environment variable `{variable}`"), secret),
            None => Err(ConfigError::missing(variable)),
        }
    }

    fn error(&self, setting: &str, error: &ConfigError) -> TelemetryError {
        TelemetryError(self.config.telemetry_error(setting, error).to_string())
    }
}

/// Adds the headers of a variable: `name=value` pairs with commas between them, whose values are percent-encoded (the specification
/// of OpenTelemetry, "Specifying headers via environment variables").
fn with_headers(
    mut transport: HttpTransport,
    variable: &str,
    headers: &str,
) -> Result<HttpTransport, TelemetryError> {
    for (number, pair) in (1..).zip(headers.split(',').filter(|pair| !pair.trim().is_empty())) {
        // No message has a value, which may be a secret.
        let failed = |problem: &dyn std::fmt::Display| {
            TelemetryError(format!("{variable}: the header number {number}: {problem}"))
        };
        let (name, value) = pair.split_once('=').ok_or_else(|| failed(&"expected name=value"))?;
        let name: HeaderName = name.trim().parse().map_err(|_| failed(&"the name is invalid"))?;
        let value =
            percent_decode_str(value.trim()).decode_utf8().map_err(|_| failed(&"the value is not text"))?;
        transport = Key::of_header(format!("the header `{name}`"), value.into_owned())
            .and_then(|value| transport.with_secret_header(name.as_str(), value))
            .map_err(|error| failed(&error))?;
    }
    Ok(transport)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn settings(section: &str, variables: &[(&str, &str)]) -> Result<Option<TelemetryBuilder>, String> {
        let text = format!("[providers.a]\nkind = \"ollama\"\nmodel = \"m\"\n{section}");
        let config = Config::from_toml(&text).map_err(|error| error.to_string())?;
        let variables: BTreeMap<_, _> = variables.iter().copied().collect();
        read(&config, &|name| variables.get(name).map(|&value| value.to_owned()))
            .map_err(|error| error.to_string())
    }

    /// The address and the names of the headers of a transport.
    fn address(transport: Option<&HttpTransport>) -> String {
        transport.map_or_else(String::new, |transport| format!("{transport:?}"))
    }

    #[test]
    fn variables_replace_the_section_and_those_of_a_signal_replace_the_general_ones() {
        const SECTION: &str = "[telemetry]\nendpoint = \"http://file:1/below/\"\nheaders = { x-file = \"1\" }\ntimeout_seconds = 3\n";
        const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

        for (section, variables, traces, metrics) in [
            ("", &[][..], None, None),
            (
                SECTION,
                &[],
                Some(("http://file:1/below/v1/traces", "x-file")),
                Some(("http://file:1/below/v1/metrics", "x-file")),
            ),
            (SECTION, &[("OTEL_SDK_DISABLED", "true")], None, None),
            (
                SECTION,
                &[(ENDPOINT, " ")],
                Some(("http://file:1/below/v1/traces", "x-file")),
                Some(("http://file:1/below/v1/metrics", "x-file")),
            ),
            (
                SECTION,
                &[(ENDPOINT, "http://env:2"), (HEADERS, "X-Env=a%20b, ")],
                Some(("http://env:2/v1/traces", "x-env")),
                Some(("http://env:2/v1/metrics", "x-env")),
            ),
            (
                "",
                &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://env:3/whole")],
                Some(("http://env:3/whole", "")),
                None,
            ),
            (
                SECTION,
                &[(HEADERS, "x-env=several"), ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-own=several")],
                Some(("http://file:1/below/v1/traces", "x-env")),
                Some(("http://file:1/below/v1/metrics", "x-own")),
            ),
        ] {
            let read = settings(section, variables).unwrap();
            let found = |transport: fn(&TelemetryBuilder) -> Option<&HttpTransport>| {
                address(read.as_ref().and_then(transport))
            };
            for (expected, found) in
                [(traces, found(|read| read.traces.as_ref())), (metrics, found(|read| read.metrics.as_ref()))]
            {
                let Some((url, header)) = expected else {
                    assert_eq!(found, "", "{section} {variables:?}");
                    continue;
                };
                let headers = if header.is_empty() { "[]".to_owned() } else { format!("[{header:?}]") };
                assert!(found.contains(&format!("base_url: {url:?}, headers: {headers}")), "{found}");
            }
        }
        let read = settings(SECTION, &[("OTEL_SERVICE_NAME", "forms")]).unwrap().unwrap();
        assert_eq!((read.service.as_str(), read.timeout), ("forms", Duration::from_secs(3)));
        let read = settings(SECTION, &[("OTEL_EXPORTER_OTLP_TIMEOUT", "1500")]).unwrap().unwrap();
        assert_eq!((read.service.as_str(), read.timeout), ("formwork", Duration::from_millis(1_500)));
        let more = "sampling = 0.25\ninterval_seconds = 60\nservice = \"docs\"\n";
        let read = settings(&format!("{SECTION}{more}"), &[]).unwrap().unwrap();
        let (sampling, interval) = (read.sampling, read.interval);
        assert_eq!(
            (read.service.as_str(), sampling, interval),
            ("docs", Some(0.25), Duration::from_secs(60))
        );
    }

    #[test]
    fn keys_come_from_the_environment_and_are_never_printed() {
        let section = "[telemetry]\nendpoint = \"http://h\"\nsecret_headers = { x-tenant = \"TENANT\" }\napi_key_env = \"KEY\"";
        let variables = [("TENANT", "Basic hunter22"), ("KEY", "sk-hunter22")];
        let read = settings(section, &variables).unwrap().unwrap();
        let shown = format!("{read:?}");
        assert!(shown.contains("x-tenant") && shown.contains("authorization") && !shown.contains("hunter22"));
        let error = settings(section, &variables[1..]).unwrap_err();
        assert!(
            error.starts_with(
                "the configuration:6:18: [telemetry]: the environment variable `TENANT` is not set"
            ),
            "{error}"
        );
    }

    #[test]
    fn each_mistake_is_one_line_with_its_place() {
        for (section, variables, says) in [
            (
                "endpoint = \"h\"",
                &[][..],
                "the configuration:5:12: [telemetry]: \"h/v1/traces\" is no base URL: expected http://",
            ),
            (
                "endpont = \"h\"",
                &[],
                "the configuration:5:1: there is no `endpont` here: did you mean `endpoint`?",
            ),
            ("endpoint = 3", &[], "the configuration:5:12: invalid type: integer `3`, expected a string"),
            (
                "sampling = 1.5",
                &[],
                "the configuration:5:12: expected a share of the traces from 0 to 1, found 1.5",
            ),
            (
                "interval_seconds = 0",
                &[],
                "the configuration:5:20: expected a number of seconds from 0.001 to 86400",
            ),
            (
                "endpoint = \"http://h\"\nheaders = { \"a b\" = \"1\" }",
                &[],
                "the configuration:6:11: [telemetry]: the header \"a b\" cannot be sent",
            ),
            (
                "endpoint = \"http://h\"\napi_key_env = \"K\"",
                &[],
                "the configuration:6:15: [telemetry]: the environment variable `K` is not set",
            ),
            (
                "endpoint = \"http://h\"\napi_key_command = []",
                &[],
                "the configuration:6:19: the command for the API key is empty",
            ),
            (
                "",
                &[("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://h")],
                "OTEL_EXPORTER_OTLP_ENDPOINT: \"ftp://h/v1/traces\" is no base URL",
            ),
            (
                "endpoint = \"http://h\"",
                &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
                "OTEL_EXPORTER_OTLP_PROTOCOL: this program exports with `http/protobuf`, not with `grpc`",
            ),
            (
                "endpoint = \"http://h\"",
                &[("OTEL_EXPORTER_OTLP_TIMEOUT", "1s")],
                "OTEL_EXPORTER_OTLP_TIMEOUT: expected a positive number of milliseconds, found \"1s\"",
            ),
            (
                "endpoint = \"http://h\"",
                &[("OTEL_EXPORTER_OTLP_HEADERS", "a=1,hunter22")],
                "OTEL_EXPORTER_OTLP_HEADERS: the header number 2: expected name=value",
            ),
            (
                "endpoint = \"http://h\"",
                &[("OTEL_EXPORTER_OTLP_HEADERS", "a=hunter%0A22")],
                "OTEL_EXPORTER_OTLP_HEADERS: the header number 1: the API key in the header `a` has a line break",
            ),
        ] {
            let error = settings(&format!("[telemetry]\n{section}"), variables).unwrap_err();
            assert!(error.starts_with(says), "{error}");
            assert!(!error.contains('\n') && !error.contains("hunter"), "{error}");
        }
    }
}
