//! The three C++ libraries that are missing from Ollama's Go module: Go does not package folders called `vendor`, and Ollama has
//! them in such a folder.

use std::path::{Path, PathBuf};

use super::{Place, Server, place, python};

/// A header-only library.
struct Library {
    /// The header that Ollama includes.
    header: &'static str,
    /// The Python package with the header, and whether only its source distribution contains it.
    package: &'static str,
    source: bool,
    /// The folder of the headers in that package.
    inside: &'static str,
}

const LIBRARIES: &[Library] = &[
    Library {
        header: "nlohmann/json.hpp",
        package: "nlohmann-json==3.12.0",
        source: false,
        inside: "nlohmann_json/include/nlohmann",
    },
    Library {
        header: "stb/stb_image.h",
        package: "libstb==0.8.0",
        source: true,
        inside: "libstb-0.8.0/src/third_party/stb",
    },
    Library {
        header: "miniaudio/miniaudio.h",
        package: "miniaudio==1.71",
        source: true,
        inside: "miniaudio-1.71/miniaudio",
    },
];

/// The system's include folders. Debian's nlohmann-json3-dev and libstb-dev install two of the three libraries there.
const SYSTEM: &[&str] = &["/usr/include", "/usr/local/include"];

/// Returns an include folder with the libraries that the system does not have.
pub(super) fn folder(place: &Place) -> Result<PathBuf, String> {
    let folder = place.folder().join("include");
    place::make(&folder)?;
    for library in LIBRARIES {
        let there = SYSTEM.iter().map(Path::new).chain([folder.as_path()]);
        if there.into_iter().any(|place| place.join(library.header).is_file()) {
            continue;
        }
        Server::Ollama.say(&format!("needs {} of {}", library.header, library.package));
        let scratch = place.scratch()?;
        let (archives, unpacked) = (scratch.join("archives"), scratch.join("unpacked"));
        python::download(library.package, library.source, &archives)?;
        python::unpack(&archives, library.inside, &unpacked)?;
        let (name, header) = library.header.split_once('/').unwrap_or((library.header, ""));
        if !unpacked.join(header).is_file() {
            return Err(format!("{} carries no {}", library.package, library.header));
        }
        let to = folder.join(name);
        place::clear(&to)?;
        std::fs::rename(&unpacked, &to).map_err(|error| format!("{}: {error}", to.display()))?;
        place::clear(&scratch)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_is_pinned_and_named_in_its_folder() {
        for library in LIBRARIES {
            let (name, version) = library.package.split_once("==").unwrap();
            assert!(library.header.split('/').count() == 2, "{}", library.header);
            if library.source {
                assert!(library.inside.starts_with(&format!("{name}-{version}/")), "{}", library.inside);
            }
        }
    }
}
