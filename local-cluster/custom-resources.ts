import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Cluster, KubectlAnswer } from './control-plane/cluster.ts';
import { eventually } from './eventually.ts';

const FOLDER = fileURLToPath(new URL('../deploy/helm/sandpool/crds/', import.meta.url));

/** As the chart does; may be repeated. */
export const installCustomResources = async (cluster: Cluster): Promise<void> => {
  const files = readdirSync(FOLDER);
  await cluster.apply(files.map((file) => readFileSync(FOLDER + file, 'utf8')).join('---\n'));
  const kinds = files.map((file) => `${file.replace('.yaml', '')}.sandpool.dev`);
  await cluster.kubectl(
    'wait',
    '--for=condition=established',
    '--timeout=120s',
    ...kinds.map((kind) => `crd/${kind}`),
  );
  // Also storage must be ready.
  let answer: KubectlAnswer | undefined;
  await eventually(
    async () => {
      answer = await cluster.kubectlAs('admin', ['get', kinds.join(), '-A']);
      return answer.exitCode === 0;
    },
    'the custom resources are served',
    () => answer?.stderr,
  );
};
