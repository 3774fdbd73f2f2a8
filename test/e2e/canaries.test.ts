import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { plantBySdk, WAYS_OF_SDKS } from '../e2b/planted-by-sdk.ts';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { TerminalUnderTest, tokenFor } from '../support/harness/a-terminal.ts';
import { exchangeRaw, type HttpAnswer, type HttpClient } from '../support/harness/http-client.ts';
import { aTemplateFolder, run, stocked } from '../support/harness/on-a-daemon.ts';
import { line } from '../support/harness/line.ts';

/** Texts that occur nowhere else, by what they stand for. */
const planted = (...names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, `canary${randomBytes(12).toString('hex')}`]));

/** Where a secret may have been hidden by how it is written. */
const formsOf = (secret: string): readonly string[] => [
  secret,
  Buffer.from(secret).toString('hex'),
  Buffer.from(secret).toString('base64').replace(/=+$/, '').slice(0, -2),
  encodeURIComponent(secret),
];

describe('planted secrets', function () {
  const sent = planted(
    'bearer',
    'cookie',
    'query key',
    'basic',
    'x-api-key',
    'stdin',
    'unknown field',
    'bad type',
    'broken body',
    'idempotency key',
    'malformed header',
    'registry password',
    'refused claim env',
    'refused claim file',
  );
  const bySdk = planted(...WAYS_OF_SDKS) as Parameters<typeof plantBySdk>[1];
  const inside = planted('template env', 'exec env', 'claim env', 'claim file');
  const host = planted('environment of the daemon');
  const secrets = new Map<string, string>();
  const answers: HttpAnswer[] = [];
  let templates: ReturnType<typeof aTemplateFolder>;
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let id: string;
  let cmdlines = '';

  const heard = async (answer: Promise<HttpAnswer>): Promise<HttpAnswer> => {
    answers.push(await answer);
    return answer;
  };

  before(async () => {
    templates = aTemplateFolder({
      canary: {
        description: 'with a variable',
        containers: [
          {
            name: 'main',
            image: 'host',
            env: [{ name: 'PLANTED', value: inside['template env'] }],
          },
        ],
        network: 'none',
      },
    });
    process.env['PLANTED_IN_THE_DAEMON'] = host['environment of the daemon'];
    daemon = await DaemonUnderTest.start(line`--templates-dir ${templates.folder}
      --log-level trace --default-pool-template canary --default-pool-replicas 2
      --compatible-api-listen 127.0.0.1:0`).finally(() => {
      delete process.env['PLANTED_IN_THE_DAEMON'];
    });
    client = daemon.client();
    await stocked(client, 2);
    const claimed = await heard(
      client.post('/sandboxes', {
        poolName: 'default',
        env: { PLANTED_AT_THE_CLAIM: inside['claim env'] },
        metadata: { job: 'canary' },
        files: [{ path: '/tmp/planted', content: inside['claim file'] }],
      }),
    );
    id = claimed.json.sandbox?.sandboxId ?? '';
    secrets
      .set('tenant key', secretOf(daemon.tenantKey))
      .set('admin key', secretOf(daemon.adminKey));
    for (const [name, secret] of Object.entries({ ...sent, ...bySdk, ...inside, ...host }))
      secrets.set(name, secret);
    await plant();
    const there = await plantBySdk(daemon, bySdk, () => {
      cmdlines += allCommandLines();
    });
    answers.push(...there.answers);
    for (const [name, secret] of Object.entries(there.told)) secrets.set(name, secret);
  });

  after(async () => {
    await daemon.dispose();
    templates.remove();
  });

  /**
   * Every way in that a secret may take: headers, addresses, bodies good and bad, keys, tokens,
   * variables.
   */
  const plant = async (): Promise<void> => {
    await heard(
      client.get(`/sandboxes?apiKey=${sent['query key']}&poolName=default`, {
        headers: {
          Authorization: `Bearer ${sent['bearer']}`,
          Cookie: `session=${sent['cookie']}`,
          'X-Api-Key': sent['x-api-key'] ?? '',
          'Proxy-Authorization': `Basic ${Buffer.from(`user:${sent['basic']}`).toString('base64')}`,
        },
      }),
    );
    await heard(client.get('/sandboxes', { key: `${daemon.tenantKey}x` }));
    await heard(
      client.post('/sandboxes', { poolName: 'nowhere', password: sent['unknown field'] }),
    );
    await heard(client.put('/sandboxpools/default', { replicas: sent['bad type'] }));
    await heard(
      client.post('/sandboxes', undefined, {
        raw: `{"poolName":"default","token":"${sent['broken body']}"`,
      }),
    );
    await heard(
      client.post('/sandboxes', {
        poolName: 'default',
        env: { 'NO NAME': sent['refused claim env'] },
      }),
    );
    await heard(
      client.post('/sandboxes', {
        poolName: 'default',
        files: [{ path: 'planted', content: sent['refused claim file'] }],
      }),
    );
    await heard(client.get(`/sandboxes/${id}`));
    await heard(client.get('/sandboxes?metadata.job=canary'));
    await exchangeRaw(
      daemon.run.port,
      `GET /healthz HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY ${sent['malformed header']}\r\n\r\n`,
    );
    await heard(
      client.post('/sandboxpools', {
        name: 'sealed',
        replicas: 0,
        templateName: 'canary',
        overrides: {
          imagePullSecret: {
            registries: [
              { registry: 'r.example', username: 'u', password: sent['registry password'] },
            ],
          },
        },
      }),
    );
    for (const path of ['/api-keys', '/admin/api-keys']) {
      const body = path === '/api-keys' ? {} : { team: 'blue', user: 'ada' };
      const { json } = await daemon
        .client(daemon.adminKey)
        .post(path, body, { headers: { 'Idempotency-Key': `${path}-${sent['idempotency key']}` } });
      secrets.set(`key of ${path}`, secretOf(json.apiKey ?? ''));
    }
    for (const tokenInUrl of [true, false]) {
      const token = await tokenFor(client, id);
      secrets.set(`token in ${tokenInUrl ? 'an address' : 'a header'}`, token);
      const terminal = await TerminalUnderTest.open(daemon, client, id, {
        token,
        tokenInUrl,
        protocols: tokenInUrl ? [] : ['sandpool.terminal.v1', `sandpool.token.${token}`],
      });
      cmdlines += allCommandLines();
      terminal.socket.close();
      await terminal.closed;
    }
    const running = client.post(`/sandboxes/${id}/exec`, {
      command: ['sh', '-c', 'cat >/dev/null; until [ -e /tmp/seen ]; do sleep 0.1; done'],
      env: { PLANTED_TOO: inside['exec env'] },
      stdin: sent['stdin'],
    });
    await within('the command runs', () => {
      const seen = allCommandLines();
      cmdlines += seen;
      return seen.includes('cat >/dev/null; until') || undefined;
    });
    await run(client, id, 'touch /tmp/seen');
    await heard(running);
  };

  const missing = (text: string, without: readonly string[] = []): string[] =>
    [...secrets]
      .filter(
        ([name, secret]) =>
          !without.includes(name) && formsOf(secret).some((form) => text.includes(form)),
      )
      .map(([name]) => name);

  it('all exist', async () => {
    expect(secrets.size).to.equal(25 + WAYS_OF_SDKS.length + 4);
    for (const [name, secret] of secrets) expect(secret.length, name).to.be.greaterThan(15);
    expect(
      (await run(client, id, 'echo $PLANTED')).stdout,
      'the variable is in the sandbox',
    ).to.equal(`${inside['template env']}\n`);
    expect(
      (await run(client, id, 'echo $PLANTED_AT_THE_CLAIM')).stdout,
      'the one of the claim is, too',
    ).to.equal(`${inside['claim env']}\n`);
    expect(
      (await run(client, id, 'cat /tmp/planted')).stdout,
      'and so is the file that it brought',
    ).to.equal(inside['claim file']);
  });

  it('appear in no log line, at the most detailed level', async () => {
    await within(
      'the log tells of all that was asked',
      () =>
        ['"level":"debug"', '"level":"trace"', '/admin/api-keys'].every((text) =>
          daemon.run.stderr().includes(text),
        ) || undefined,
    );
    expect(missing(daemon.run.stderr() + daemon.run.stdout())).to.deep.equal([]);
  });

  it('appear in no answer, including refusals', () => {
    expect(answers.map(({ status }) => status)).to.deep.equal([
      ...[201, 200, 401, 404, 400, 400, 400, 400, 200, 200, 201, 200],
      // by the port of E2B's SDKs
      ...[200, 401, 404, 400, 400, 401, 401, 200, 200, 200, 200, 200],
    ]);
    expect(
      missing(answers.map(({ headers, text }) => JSON.stringify(headers) + text).join('\n')),
    ).to.deep.equal([]);
  });

  it('appear on no debug page', async () => {
    const admin = daemon.client(daemon.adminKey);
    const pages = new Map<string, string>([['metrics', await daemon.metrics()]]);
    const actors = (
      JSON.parse((await admin.get('/debug/actors?limit=1000')).text) as {
        readonly items: readonly { readonly kind: string; readonly key: string }[];
      }
    ).items;
    for (const path of [
      '/admin/audit?limit=1000',
      '/debug/actors?limit=1000',
      '/debug/shards',
      '/debug/log-level',
      '/debug/machines/sandbox',
      '/readyz',
      '/admin/api-keys',
      ...actors.map(({ kind, key }) => `/debug/actors/${kind}/${key}`),
    ])
      pages.set(path, (await admin.get(path)).text);

    expect(pages.get('/admin/audit?limit=1000'))
      .to.include('"operation":"createPool"')
      .and.include('"operation":"createExecToken"');
    expect(actors.length).to.be.greaterThan(3);
    for (const [path, text] of pages) expect(missing(text), path).to.deep.equal([]);
  });

  it('appear in no audit line, although all were written', async () => {
    const folder = join(daemon.dataDir, 'audit');
    await within(
      'the audit has the last write',
      () => dataFiles(folder).includes('"operation":"execInSandbox"') || undefined,
    );

    expect(missing(dataFiles(folder))).to.deep.equal([]);
  });

  it('appear in no process arguments', () => {
    expect(cmdlines).to.include('launcher');
    expect(missing(cmdlines)).to.deep.equal([]);
  });

  it('appear in no file of the daemon, except keys in their own files and template variables in pools', async () => {
    expect(missing(dataFiles(daemon.dataDir), ['template env'])).to.deep.equal([]);
    await daemon.stop();
    expect(missing(dataFiles(daemon.dataDir), ['template env'])).to.deep.equal([]);
    await daemon.start();
  });

  it("from the daemon's environment do not reach sandboxes", async () => {
    const seen = await run(daemon.client(), id, 'env; cat /proc/*/environ | tr "\\0" "\\n"');

    expect(seen.stdout).to.include('PLANTED=').and.include('PLANTED_AT_THE_CLAIM=');
    expect(missing(seen.stdout + seen.stderr, ['template env', 'claim env'])).to.deep.equal([]);
  });
});

const secretOf = (apiKey: string): string => apiKey.split('_')[2] ?? '';

const allCommandLines = (): string =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => contentOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' '))
    .join('\n');

const dataFiles = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(
      (path) =>
        !/^keys\/\w+\.key$/.test(path) &&
        statSync(join(folder, path), { throwIfNoEntry: false })?.isFile() === true,
    )
    .map((path) => `${path}\n${contentOf(join(folder, path))}`)
    .join('\n');

/** Empty for what is gone meanwhile. */
const contentOf = (path: string): string => {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
};
