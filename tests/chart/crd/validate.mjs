// Reads objects as JSON lines, answers with one line each: null, or what is wrong.
import { createInterface } from "node:readline";
import { PodMonitor, PrometheusRule, ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/index";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1/index";

const kinds = { PodMonitor, PrometheusRule, ServiceMonitor, ScaledObject };

for await (const line of createInterface({ input: process.stdin })) {
  const object = JSON.parse(line);
  let problem = null;
  try {
    if (!(object.kind in kinds)) throw new Error(`no schema for kind ${object.kind}`);
    new kinds[object.kind](object).validate();
  } catch (error) {
    problem = String(error.message);
  }
  console.log(JSON.stringify(problem));
}
