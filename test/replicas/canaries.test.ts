import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readPidFile } from '../../src/daemon/process/pid-file.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { onReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

const canary = (): string => `canary${randomBytes(12).toString('hex')}`;

describe('secrets planted on replicas', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onReplicas(controlPlane, { count: 2, env: { SANDPOOL_LOG_LEVEL: 'trace' } });
  const secrets = {
    'registry password': canary(),
    cookie: canary(),
    'variable of a pool': canary(),
    'variable of a command': canary(),
    'variable of a claim': canary(),
    input: canary(),
  };
  const clients: HttpClient[] = [];
  let keys: readonly string[];
  let answers = '';

  const client = (at: number, key: string): HttpClient => {
    const made = new HttpClient(replicas().list[at]?.port ?? 0, key);
    clients.push(made);
    return made;
  };
  const missing = (text: string): readonly string[] =>
    [...Object.entries(secrets), ...keys.map((key) => ['key', key.split('_')[2] ?? ''] as const)]
      .filter(([, secret]) => text.includes(secret))
      .map(([name]) => name);

  before(async () => {
    const tenant = await replicas().tenant('red', 'rita');
    keys = [tenant, replicas().adminKey];
    const ask = client(0, tenant);
    answers +=
      (
        await untilAnswered(201, () =>
          ask.post('/sandboxpools', {
            name: 'sealed',
            replicas: 1,
            template: {
              containers: [
                {
                  name: 'main',
                  image: 'registry.invalid/sandbox:1',
                  command: ['sleep', 'infinity'],
                  env: [{ name: 'PLANTED', value: secrets['variable of a pool'] }],
                  resources: { limits: { cpu: '100m', memory: '64Mi' } },
                },
              ],
            },
            overrides: {
              imagePullSecret: {
                registries: [
                  { registry: 'r.example', username: 'u', password: secrets['registry password'] },
                ],
              },
            },
          }),
        )
      ).headers['content-type'] ?? '';
    const claimed = await untilAnswered(201, () =>
      client(1, tenant).post(
        '/sandboxes',
        { poolName: 'sealed', env: { PLANTED_TOO: secrets['variable of a claim'] } },
        { headers: { Cookie: `session=${secrets.cookie}` } },
      ),
    );
    const id = String(claimed.json.sandbox?.['sandboxId']);
    answers += claimed.text;
    answers += (
      await ask.post(`/sandboxes/${id}/exec`, {
        command: ['true'],
        env: { PLANTED: secrets['variable of a command'] },
        stdin: secrets.input,
      })
    ).text;
    answers += (await ask.get('/sandboxes', { key: `${tenant}x` })).text;
  });
  after(() => {
    for (const each of clients) each.close();
  });

  it('appear in no answer', () => {
    expect(missing(answers)).to.deep.equal([]);
  });

  it('appear in no log line, at the most detailed level, and in no audit line', async () => {
    for (const { log, dataDir } of replicas().list) {
      const files = (): string =>
        readdirSync(join(dataDir, 'audit'))
          .map((name) => readFileSync(join(dataDir, 'audit', name), 'utf8'))
          .join('\n');
      await eventually(() => files().includes('"kind":"write"'), 'its audit has a write');
      expect(log).to.include('"level":"trace"');
      expect(missing(log + files())).to.deep.equal([]);
    }
  });

  it('appear on no debug page, and in no process arguments', async () => {
    const admin = client(0, replicas().adminKey);
    const { items } = JSON.parse((await admin.get('/debug/actors?limit=1000')).text) as {
      readonly items: readonly { readonly kind: string; readonly key: string }[];
    };
    for (const path of [
      '/admin/audit?limit=1000',
      '/debug/actors?limit=1000',
      '/debug/shards',
      '/readyz',
      ...items.map(({ kind, key }) => `/debug/actors/${kind}/${key}`),
    ]) {
      expect(missing((await admin.get(path)).text), path).to.deep.equal([]);
    }
    for (const { dataDir, pid } of replicas().list) {
      const metrics = await fetch(readPidFile(dataDir)?.metricsAddress ?? '');
      const text = await metrics.text();
      expect(text).to.include('sandpool_');
      expect(missing(text), 'metrics').to.deep.equal([]);
      expect(missing(readFileSync(`/proc/${pid}/cmdline`, 'latin1')), 'arguments').to.deep.equal(
        [],
      );
    }
  });
});
