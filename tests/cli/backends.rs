//! The list of backends, and runs on a backend that does not open.

#[allow(unused_imports)]
use super::place::{Place, Printed, TINY, works};

#[test]
fn backends_prints_a_line_for_every_backend_compiled_in_or_not() {
    let Printed { stdout: printed, stderr } = Place::new().works("backends");
    assert_eq!(stderr, "", "drivers are quiet where there is no display");
    let lines: Vec<&str> = printed.lines().collect();
    let names: Vec<&str> = lines.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["flex", "ndarray", "wgpu", "cuda"]);
    let compiled = [true, cfg!(feature = "ndarray"), cfg!(feature = "wgpu"), cfg!(feature = "cuda")];
    for (line, compiled) in lines[..2].iter().zip(compiled) {
        assert_eq!(line.contains("opens: ") && line.contains("CPU threads"), compiled, "{printed}");
    }
    for (line, compiled) in lines.iter().zip(compiled) {
        assert_eq!(line.contains("not compiled in"), !compiled, "{line}");
        assert!(compiled || line.contains("cargo build --release --features"), "{line}");
    }
}

#[test]
fn an_unknown_backend_is_refused_with_those_there_are() {
    let place = Place::new();
    let known = ["flex", "ndarray", "wgpu", "cuda"];
    place.refuses(&format!("{TINY} --backend wgpuu"), &[&known[..], &["'wgpuu'", "similar"]].concat());
    place.refuses(&format!("{TINY} --set backend=gpu"), &[&known[..], &["`backend`", "\"gpu\""]].concat());
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_backend_that_is_not_compiled_in_is_refused_with_the_build_that_has_it() {
    let place = Place::new();
    let words = ["\"cuda\" is not compiled in", "cargo build --release --features cuda", "choose one of flex"];
    place.refuses(&format!("{TINY} --backend cuda --out run"), &words);
    place.refuses(&format!("{TINY} --set backend=cuda"), &words);
    place.works(&format!("{TINY} --out run --quiet"));
    place.write("rows.csv", "1,2\n");
    place.refuses("predict run --input rows.csv --backend cuda --out p.csv", &words);
}

/// Where no driver is found: neither Vulkan's nor OpenGL's.
#[cfg(all(feature = "wgpu", target_os = "linux"))]
fn without_drivers(place: &Place, line: &str) -> std::process::Command {
    let mut command = place.command(line);
    for variable in ["VK_ICD_FILENAMES", "VK_DRIVER_FILES", "__EGL_VENDOR_LIBRARY_FILENAMES", "LIBGL_DRIVERS_PATH"] {
        command.env(variable, place.path("no-driver"));
    }
    command.env("WGPU_BACKEND", "vulkan");
    command
}

#[cfg(all(feature = "wgpu", target_os = "linux"))]
#[test]
fn a_run_on_wgpu_without_an_adapter_is_refused_and_leaves_nothing() {
    let place = Place::new();
    let words = ["backend \"wgpu\" finds no device on this machine", "`fedstein backends`"];
    let mut command = without_drivers(&place, &format!("{TINY} --backend wgpu --out run"));
    place.refuses_command(&mut command, &words);
}

#[cfg(all(feature = "wgpu", target_os = "linux"))]
#[test]
fn backends_says_that_wgpu_does_not_open_without_an_adapter() {
    let place = Place::new();
    let printed = works(&mut without_drivers(&place, "backends")).stdout;
    let line = printed.lines().find(|line| line.starts_with("wgpu")).unwrap();
    assert!(line.contains("does not open: ") && line.contains("adapter"), "{line}");
}
