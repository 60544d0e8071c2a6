//! The containers that the files describe, and the names by which they find each other,
//! for Kubernetes and Compose alike.

use std::collections::BTreeMap;

use serde_json::Value;

/// One container.
#[derive(Clone, Debug)]
pub struct Container {
    /// Of which pod, or service of Compose: those in one have one loopback interface.
    pub pod: String,
    pub name: String,
    pub image: String,
    /// With variables replaced, as Kubernetes does it.
    pub args: Vec<String>,
    /// How many there may be of it.
    pub copies: u64,
    /// Named ports.
    pub ports: BTreeMap<String, u16>,
    /// Files that are mounted from ConfigMaps, and what is in them.
    pub files: BTreeMap<String, String>,
    /// Seconds that it has to end, and seconds of them before it is told to.
    pub grace: f64,
    pub pause: f64,
    /// Bytes that it may have.
    pub memory: Option<u64>,
    /// The port that Prometheus reads.
    pub scraped: Option<u16>,
    /// What describes it.
    pub spec: Value,
    /// What describes its pod.
    pub around: Value,
}

impl Container {
    /// Whether the program runs in it.
    pub fn is_tidegate(&self) -> bool {
        self.image.starts_with("tidegate:")
    }

    /// Whether it runs this command of the program.
    pub fn runs(&self, command: &str) -> bool {
        self.is_tidegate() && self.args.first().is_some_and(|first| first == command)
    }

    /// Every value of a flag that is written as `--flag=value`.
    pub fn flags(&self, flag: &str) -> Vec<&str> {
        let value = |arg: &'_ String| -> Option<usize> {
            let rest = arg.strip_prefix(flag)?;
            rest.starts_with('=').then_some(flag.len() + 1)
        };
        let with = |arg| value(arg).map(|start| &arg[start..]);
        self.args.iter().filter_map(with).collect()
    }

    pub fn flag(&self, flag: &str) -> Option<&str> {
        self.flags(flag).first().copied()
    }

    /// A flag's number, or what it is without the flag.
    pub fn number(&self, flag: &str, default: f64) -> f64 {
        let number = self.flag(flag).map(|text| text.parse().expect("a number"));
        number.unwrap_or(default)
    }
}

/// All of them, and who is found at `host:port`: which pod, and which port of it.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub containers: Vec<Container>,
    pub names: BTreeMap<String, (String, u16)>,
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Objects of a kind.
pub fn of_kind<'a>(documents: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    documents.iter().filter(move |one| one["kind"] == kind)
}

pub fn named<'a>(documents: &'a [Value], kind: &str, name: &str) -> Option<&'a Value> {
    let is = |one: &&Value| one["kind"] == kind && one["metadata"]["name"] == name;
    documents.iter().find(is)
}

/// What makes pods.
pub fn workloads(documents: &[Value]) -> impl Iterator<Item = &Value> {
    let makes = |one: &&Value| one["spec"]["template"].is_object();
    documents.iter().filter(makes)
}

/// Whether each label that is asked for is there.
pub fn selects(asked: &Value, labels: &Value) -> bool {
    let asked = asked.as_object();
    asked.is_some_and(|asked| asked.iter().all(|(label, value)| labels[label] == *value))
}

/// Most pods that there may be of a workload.
pub fn most(documents: &[Value], name: &str) -> u64 {
    let scaler = named(documents, "HorizontalPodAutoscaler", name);
    scaler.map_or(1, |scaler| {
        scaler["spec"]["maxReplicas"].as_u64().unwrap_or(0)
    })
}

impl Scene {
    pub fn kubernetes(documents: &[Value]) -> Self {
        let mut scene = Self::default();
        for workload in workloads(documents) {
            let pod = text(&workload["metadata"]["name"]);
            let template = &workload["spec"]["template"];
            let spec = &template["spec"];
            let all = list(&spec["initContainers"])
                .iter()
                .chain(list(&spec["containers"]));
            for container in all {
                let annotations = &template["metadata"]["annotations"];
                let scraped = annotations["prometheus.io/port"].as_str();
                let ports = list(&container["ports"]).iter();
                let ports = ports.map(|port| (text(&port["name"]), number(&port["containerPort"])));
                scene.containers.push(Container {
                    name: text(&container["name"]),
                    image: text(&container["image"]),
                    args: arguments(container, &format!("{pod}-0")),
                    ports: ports.collect(),
                    files: files(documents, spec, container),
                    grace: spec["terminationGracePeriodSeconds"]
                        .as_f64()
                        .unwrap_or(30.0),
                    pause: container["lifecycle"]["preStop"]["sleep"]["seconds"]
                        .as_f64()
                        .unwrap_or(0.0),
                    memory: bytes(&container["resources"]["limits"]["memory"]),
                    scraped: scraped.and_then(|port| port.parse().ok()),
                    spec: container.clone(),
                    around: template.clone(),
                    copies: most(documents, &pod),
                    pod: pod.clone(),
                });
            }
            for service in of_kind(documents, "Service") {
                if selects(
                    &service["spec"]["selector"],
                    &template["metadata"]["labels"],
                ) {
                    scene.name_pods(service, workload, most(documents, &pod));
                }
            }
        }
        scene
    }

    /// The names that a Service gives to pods of a workload.
    fn name_pods(&mut self, service: &Value, workload: &Value, most: u64) {
        let (pod, name) = (&workload["metadata"]["name"], &service["metadata"]["name"]);
        let (pod, name) = (text(pod), text(name));
        for port in list(&service["spec"]["ports"]) {
            let target = &port["targetPort"];
            let ports = self.containers.iter().filter(|one| one.pod == pod);
            let found = ports
                .clone()
                .find_map(|one| one.ports.get(target.as_str()?));
            let Some(&found) = found else { continue };
            if service["spec"]["clusterIP"] != "None" {
                let at = format!("{name}:{}", port["port"]);
                self.names.insert(at, (pod.clone(), found));
            } else if workload["spec"]["serviceName"] == *name {
                // Nothing stands between: the pod's own port counts.
                for id in 0..most {
                    let at = format!("{pod}-{id}.{name}:{found}");
                    self.names.insert(at, (format!("{pod}-{id}"), found));
                }
            }
        }
    }

    pub fn compose(model: &Value) -> Self {
        let mut scene = Self::default();
        let services = model["services"].as_object();
        for (pod, service) in services.into_iter().flatten() {
            let grace = service["stop_grace_period"].as_str();
            let grace = grace.map(|text| text.trim_end_matches('s').parse().expect("seconds"));
            let command = list(&service["command"]).iter().map(text);
            scene.containers.push(Container {
                pod: pod.clone(),
                name: pod.clone(),
                image: text(&service["image"]),
                args: command.collect(),
                copies: 1,
                ports: BTreeMap::new(),
                files: BTreeMap::new(),
                // Compose's own default.
                grace: grace.unwrap_or(10.0),
                pause: 0.0,
                memory: bytes(&service["mem_limit"]),
                scraped: None,
                spec: service.clone(),
                around: Value::Null,
            });
            for port in [4222, 8000, 8080, 8100] {
                scene
                    .names
                    .insert(format!("{pod}:{port}"), (pod.clone(), port));
            }
        }
        scene
    }

    /// Who is at `host:port` for a container, as a pod's name and port. The pods of a
    /// StatefulSet are told apart by their number.
    pub fn find(&self, from: &Container, at: &str) -> Option<(String, u16)> {
        if let Some(port) = at.strip_prefix("127.0.0.1:") {
            return Some((from.pod.clone(), port.parse().ok()?));
        }
        self.names.get(at).cloned()
    }
}

fn number(value: &Value) -> u16 {
    let number = value.as_u64().and_then(|number| number.try_into().ok());
    number.expect("a port")
}

/// Its arguments, with `$(NAME)` replaced by what the container's environment says.
fn arguments(container: &Value, pod: &str) -> Vec<String> {
    let mut variables = BTreeMap::new();
    for variable in list(&container["env"]) {
        let from = &variable["valueFrom"];
        let value = if from["secretKeyRef"].is_object() {
            "p0123".to_owned()
        } else if from["fieldRef"]["fieldPath"] == "metadata.name" {
            pod.to_owned()
        } else {
            text(&variable["value"])
        };
        variables.insert(text(&variable["name"]), value);
    }
    let expand = |arg: &Value| {
        let begin = text(arg);
        variables.iter().fold(begin, |arg, (name, value)| {
            arg.replace(&format!("$({name})"), value)
        })
    };
    list(&container["args"]).iter().map(expand).collect()
}

/// What its mounts of ConfigMaps hold, by path.
fn files(documents: &[Value], pod: &Value, container: &Value) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for mount in list(&container["volumeMounts"]) {
        let volumes = list(&pod["volumes"]).iter();
        let volume = volumes.clone().find(|one| one["name"] == mount["name"]);
        let map = volume.and_then(|volume| volume["configMap"]["name"].as_str());
        let map = map.and_then(|map| named(documents, "ConfigMap", map));
        let data = map.and_then(|map| map["data"].as_object());
        for (file, content) in data.into_iter().flatten() {
            files.insert(
                format!("{}/{file}", text(&mount["mountPath"])),
                text(content),
            );
        }
    }
    files
}

/// A quantity of memory, as Kubernetes or Compose writes it.
fn bytes(value: &Value) -> Option<u64> {
    let text = value.as_str()?;
    let digits = text.trim_end_matches(|last: char| !last.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "Mi" | "m" => 20,
        "Gi" | "g" => 30,
        other => panic!("{other} is no unit that is used here"),
    };
    Some(digits.parse::<u64>().expect("digits") << unit)
}
