use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::ConfigError;

/// Returns a header of this name and value.
pub(crate) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ConfigError> {
    let wrong = |problem| ConfigError::Header { name: name.to_owned(), problem };
    let name = HeaderName::try_from(name).map_err(|_| wrong("the name is invalid"))?;
    let value = HeaderValue::try_from(value)
        .map_err(|_| wrong("its value has a line break or a control character in it"))?;
    Ok((name, value))
}

/// Adds headers, replacing those of the same name.
pub(crate) fn add(headers: &mut HeaderMap, more: &HeaderMap) {
    for (name, value) in more {
        headers.insert(name.clone(), value.clone());
    }
}
