//! What the product is built from: nothing of `tools/`, and nothing that it does not use. Whoever runs the first command waits
//! for all of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Whether a crate's name occurs in the sources of this folder.
fn occurs(name: &str, folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() { occurs(name, &path) } else { fs::read_to_string(&path).unwrap().contains(name) }
    })
}

#[test]
fn no_crate_of_the_product_depends_on_the_tools_or_on_what_it_does_not_use() {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let root = Path::new(metadata["workspace_root"].as_str().unwrap());
    let (mut crates, mut wrong) = (0, Vec::new());
    for package in metadata["packages"].as_array().unwrap() {
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        if !folder.starts_with(root.join("crates")) {
            continue;
        }
        crates += 1;
        for dependency in package["dependencies"].as_array().unwrap().iter().filter(|it| it["kind"] != "dev")
        {
            let name = |field: &str| dependency[field].as_str().map(|name| name.replace('-', "_"));
            let tool = dependency["path"]
                .as_str()
                .is_some_and(|path| Path::new(path).starts_with(root.join("tools")));
            let used = name("rename").or(name("name")).is_some_and(|name| occurs(&name, &folder.join("src")));
            if tool || !used {
                wrong.push(format!("{} depends on {}", package["name"], dependency["name"]));
            }
        }
    }
    assert!(crates >= 12, "all crates of the product: {crates}");
    assert_eq!(wrong, [""; 0]);
}
