import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  ConfigFaults,
  configFlags,
  dataDirFrom,
  isAskedFor,
  loadConfig,
  type NamedTexts,
} from '../../src/daemon/config/config.ts';
import { listSettings } from '../../src/daemon/config/settings.ts';
import { configJson, configYaml } from '../../src/daemon/config/shown.ts';

const DEFAULT_FILE = new URL('../../config/default.yaml', import.meta.url);

describe('the configuration', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-config-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const aFile = (text: string): string => {
    const file = join(folder, 'my.yaml');
    writeFileSync(file, text);
    return file;
  };

  const faultsOf = (load: () => unknown): string[] => {
    try {
      load();
    } catch (error) {
      if (error instanceof ConfigFaults) return error.message.split('\n');
      throw error;
    }
    return [];
  };

  it('cannot make a daemon both manager and worker', () => {
    const env = { SANDPOOL_ROLE: 'manager', SANDPOOL_FLEET_MANAGERS: 'wss://hub.example.com' };
    expect(faultsOf(() => loadConfig({ env })).join()).to.include('a manager cannot be a worker');
  });

  it('has the documented defaults without files, variables or flags', () => {
    const { config } = loadConfig({ env: {} });

    expect(config.listen).to.deep.equal({ host: '127.0.0.1', port: 8080 });
    expect(config.clusterId).to.equal('local');
    expect(config.namespacePattern).to.equal('{team}');
    expect(config.pidsMax).to.equal(256);
    expect(config.quotas).to.deep.equal({ sandboxes: 1000, pools: 50, replicas: 2000 });
    expect(config.keys).to.deep.equal({
      defaultLifetime: 90 * 86_400_000,
      maxLifetime: 365 * 86_400_000,
      creation: 'everyone',
      requestsPerSecond: 0,
    });
    expect(config.history).to.deep.equal({
      listWindow: 86_400_000,
      retention: 7 * 86_400_000,
      totalBytes: 8_589_934_592,
      tenantBytes: 1_073_741_824,
    });
    expect(config.defaultPool).to.deep.equal({
      name: 'default',
      replicas: 4,
      maxReplicas: 64,
      template: 'default',
    });
    expect(config.interpreterPool).to.deep.equal({ maxReplicas: 64 });
    expect(config.templatesDir).to.match(/\/config\/templates$/);
  });

  it('prefers flags to variables, variables to a file, and the file to defaults', () => {
    const file = aFile('pidsMax: 11\nparallelStarts: 12\nclusterId: c13\nquotas: { pools: 14 }\n');

    const { config, origins } = loadConfig({
      argvOptions: { config: file, pidsMax: '31' },
      env: { SANDPOOL_PIDS_MAX: '21', SANDPOOL_PARALLEL_STARTS: '22' },
    });

    expect(config).to.include({ pidsMax: 31, parallelStarts: 22, clusterId: 'c13' });
    expect(config.quotas).to.deep.equal({ sandboxes: 1000, pools: 14, replicas: 2000 });
    expect(origins).to.include({
      pidsMax: '--pids-max',
      parallelStarts: 'SANDPOOL_PARALLEL_STARTS',
      clusterId: file,
      listen: 'default',
    });
  });

  it('treats ports of the shipped files as defaults, which another daemon may use', () => {
    const kubernetes = fileURLToPath(new URL('../../config/kubernetes.yaml', import.meta.url));
    const env = { SANDPOOL_REDIS_URLS: 'redis://127.0.0.1:6379' };
    const asked = (argvOptions: NamedTexts): readonly boolean[] => {
      const { origins } = loadConfig({ env, argvOptions });
      return ['metrics.listen', 'compatibleApi.listen'].map((path) => isAskedFor(origins[path]));
    };
    const listen = { compatibleApiListen: '127.0.0.1:8091' };

    expect(asked({})).to.deep.equal([false, false]);
    expect(asked({ config: kubernetes })).to.deep.equal([false, false]);
    expect(asked({ config: kubernetes, ...listen })).to.deep.equal([false, true]);
    expect(asked({ config: aFile(readFileSync(kubernetes, 'utf8')) })).to.deep.equal([true, true]);
  });

  it("uses OpenTelemetry's collector of traces unless one is set", () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };

    expect(loadConfig({ env: {} }).config.tracing.endpoint).to.equal(undefined);
    expect(loadConfig({ env })).to.have.nested.property(
      'config.tracing.endpoint',
      'http://127.0.0.1:4318',
    );
    expect(loadConfig({ env }).origins).to.have.property(
      'tracing.endpoint',
      'OTEL_EXPORTER_OTLP_ENDPOINT',
    );
    expect(
      loadConfig({ env: { ...env, SANDPOOL_TRACING_ENDPOINT: 'https://traces.example.com' } })
        .config.tracing.endpoint,
    ).to.equal('https://traces.example.com');
    expect(() =>
      loadConfig({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:secret@h' } }),
    ).to.throw(
      'tracing.endpoint must be a URL such as http://127.0.0.1:4318, without credentials (OTEL_EXPORTER_OTLP_ENDPOINT)',
    );
  });

  it("uses OpenTelemetry's headers, compression and attributes of traces unless they are set", () => {
    const env = {
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic YTpi==, x-tenant=a%2Cb',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_SERVICE_NAME: 'pool',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test,team=a%20b',
    };

    const { config, given } = loadConfig({ env });
    expect(config.tracing).to.deep.include({
      headers: [
        { name: 'authorization', value: 'Basic YTpi==' },
        { name: 'x-tenant', value: 'a,b' },
      ],
      compression: 'gzip',
      serviceName: 'pool',
      resourceAttributes: [
        { name: 'deployment.environment', value: 'test' },
        { name: 'team', value: 'a b' },
      ],
    });
    expect(configJson(given)).not.to.contain('YTpi');
    expect(
      loadConfig({ env: { ...env, SANDPOOL_TRACING_COMPRESSION: 'none' } }).config.tracing
        .compression,
    ).to.equal('none');
  });

  it('refuses an invalid header or attribute without quoting it', () => {
    for (const [name, text, setting] of [
      ['OTEL_EXPORTER_OTLP_HEADERS', 'hunter2', 'tracing.headers'],
      ['OTEL_EXPORTER_OTLP_HEADERS', 'a b=hunter2', 'tracing.headers'],
      ['OTEL_EXPORTER_OTLP_HEADERS', 'a=hunter2%0A', 'tracing.headers'],
      ['OTEL_RESOURCE_ATTRIBUTES', '=hunter2', 'tracing.resourceAttributes'],
      ['OTEL_RESOURCE_ATTRIBUTES', 'a=hunter2%ZZ', 'tracing.resourceAttributes'],
    ] as const)
      expect(() => loadConfig({ env: { [name]: text } }), text)
        .to.throw(`${setting} must be NAME=VALUE`)
        .with.property('message')
        .that.includes(name)
        .and.not.includes('hunter2');
  });

  it('accepts webhooks with secret files, and quotes no refused address', () => {
    const load = (...webhooks: readonly string[]) =>
      loadConfig({ env: { SANDPOOL_APPROVALS_WEBHOOKS: webhooks.join(',') } });
    const { config, given } = load('https://a.example.com/x?token=t  secretFile=/run/a b');

    expect(config.approvals.webhooks).to.deep.equal([
      { url: 'https://a.example.com/x?token=t', secretFile: '/run/a b' },
    ]);
    expect(configYaml(given)).not.to.include('a.example.com');
    for (const wrong of [
      'https://a.example.com/hidden',
      'https://a.example.com/hidden secretFile=relative',
      'https://hidden:hidden@a.example.com secretFile=/s',
      'https://a.example.com/#hidden secretFile=/s',
      'file:///hidden secretFile=/s',
      'hidden secretFile=/s',
    ]) {
      const faults = faultsOf(() => load(wrong));
      expect(faults, wrong).to.have.length(1);
      expect(faults[0])
        .to.match(/^approvals\.webhooks must each be URL secretFile=\/PATH/)
        .and.not.include('hidden');
    }
  });

  it('reads the file named by --config, or else by SANDPOOL_CONFIG', () => {
    const file = aFile('pidsMax: 77\n');

    expect(loadConfig({ env: { SANDPOOL_CONFIG: file } }).config.pidsMax).to.equal(77);
    expect(
      loadConfig({ argvOptions: { config: file }, env: { SANDPOOL_CONFIG: '/no/such' } }).config
        .pidsMax,
    ).to.equal(77);
  });

  it('reports every fault of every source at once, with its setting and origin', () => {
    const file = aFile(
      'pidsMax: many\nquotas:\n  sandboxs: 5\nlistne: "x"\nbreaker: 3\nhistory: { listWindow: 200h }\n',
    );

    const faults = faultsOf(() =>
      loadConfig({
        argvOptions: { config: file, isolation: 'some', listen: '8080' },
        env: {
          SANDPOOL_REFILL_BURST: 'lots',
          SANDPOOL_QUOTA: '3',
          SANDPOOL_KEYS_MAX_LIFETIME: '1h',
        },
      }),
    );

    expect(faults).to.have.members([
      `quotas.sandboxs is not a setting; did you mean quotas.sandboxes? (${file})`,
      `listne is not a setting; did you mean listen? (${file})`,
      `breaker must be a group of settings (${file})`,
      'SANDPOOL_QUOTA is not a setting (the environment)',
      `pidsMax must be a whole number from 8 to 32768 (${file})`,
      'isolation must be one of auto, none (--isolation)',
      'listen must be HOST:PORT, an IPv6 host in brackets, port 0 to 65535 (--listen)',
      'refill.burst must be a whole number from 1 to 10000 (SANDPOOL_REFILL_BURST)',
      `history.listWindow must not exceed history.retention (${file})`,
      'keys.defaultLifetime must not exceed keys.maxLifetime (default)',
    ]);
  });

  it('suggests the nearest setting, even of another group, and none if none is near', () => {
    const problem = (text: string): string | undefined =>
      /did you mean (.*)\?/.exec(
        faultsOf(() => loadConfig({ argvOptions: { config: aFile(text) }, env: {} }))[0] ?? '',
      )?.[1];

    expect(problem('pidMax: 3')).to.equal('pidsMax');
    expect(problem('perSecond: 3')).to.equal('refill.perSecond');
    expect(problem('history: { retentoin: 1h }')).to.equal('history.retention');
    expect(problem('colour: red')).to.equal(undefined);
    expect(problem(`${'x'.repeat(100_000)}: 1`)).to.equal(undefined);
  });

  it('refuses a file that is missing, malformed or ambiguous, without quoting it', () => {
    const load = (file: string) =>
      faultsOf(() => loadConfig({ argvOptions: { config: file }, env: {} }));

    expect(load(join(folder, 'none.yaml'))[0]).to.match(/none\.yaml can't be read: ENOENT/);
    for (const text of ['a: [secret', 'pidsMax: 100\npidsMax: 200\nx: secret\n']) {
      const faults = load(aFile(text));
      expect(faults).to.have.length.greaterThan(0);
      expect(faults.join('\n'))
        .to.match(/at line \d/)
        .and.not.include('secret');
    }
    expect(load(aFile('- 1\n'))).to.deep.equal([
      `${join(folder, 'my.yaml')} must be a group of settings`,
    ]);
  });

  it('names a required setting without a value', () => {
    expect(faultsOf(() => loadConfig({ env: {}, files: [] }))).to.include(
      'pidsMax is not set (no source)',
    );
  });

  it('never accepts a prototype key as a setting', () => {
    const file = aFile(
      '__proto__: { pidsMax: 9 }\nconstructor: 1\nquotas: { __proto__: { pools: 1 } }\n',
    );

    const faults = faultsOf(() => loadConfig({ argvOptions: { config: file }, env: {} }));

    expect(faults).to.have.length(3);
  });

  it('reads lists, addresses and paths from text', () => {
    const { config } = loadConfig({
      argvOptions: { dataDir: 'here', listen: '[::1]:0' },
      env: {
        SANDPOOL_TERMINAL_ALLOWED_ORIGINS: 'https://a.example, http://b.example:81',
        SANDPOOL_PIDS_MAX: '',
      },
    });

    expect(config.terminal.allowedOrigins).to.deep.equal([
      'https://a.example',
      'http://b.example:81',
    ]);
    expect(config.listen).to.deep.equal({ host: '::1', port: 0 });
    expect(config.dataDir).to.equal(join(process.cwd(), 'here'));
    expect(config.pidsMax).to.equal(256);
  });

  it('resolves a relative path in a file from the folder of that file', () => {
    const file = aFile('dataDir: data\ntemplatesDir: ../t\n');

    const { config } = loadConfig({ argvOptions: { config: file }, env: {} });

    expect(config.dataDir).to.equal(join(folder, 'data'));
    expect(config.templatesDir).to.equal(join(folder, '../t'));
  });

  it('ignores the variables that Kubernetes sets for a service called sandpool', () => {
    expect(() =>
      loadConfig({
        env: { SANDPOOL_SERVICE_HOST: '10.0.0.1', SANDPOOL_PORT_8080_TCP: 'tcp://10.0.0.1:8080' },
      }),
    ).to.not.throw();
  });

  it('documents every setting in config/default.yaml, with its variable and its flag, in order', () => {
    const lines = readFileSync(DEFAULT_FILE, 'utf8')
      .split('\n')
      .map((line) => line.trim());
    const documented = lines.filter((line) => /^# SANDPOOL_\w+( {2}--|$)/.test(line));

    expect(documented).to.deep.equal(
      listSettings().map(({ variable, flag }) =>
        flag === undefined ? `# ${variable}` : `# ${variable}  ${flag}`,
      ),
    );
    for (const { description } of listSettings()) expect(lines).to.include(`# ${description}`);
  });

  it('has no flag for a secret, since everybody can read command lines', () => {
    const secrets = listSettings().filter(({ secret }) => secret);

    expect(secrets.map(({ path }) => path)).to.deep.equal([
      'tracing.headers',
      'approvals.webhooks',
    ]);
    expect(configFlags().map(({ flags }) => flags)).to.not.include('--tracing-headers <list>');
  });

  it('has one flag for each other setting, and --config', () => {
    const flags = configFlags().map(({ flags: text }) => text.split(' ')[0]);

    expect(flags).to.deep.equal(['--config', ...listSettings().flatMap(({ flag }) => flag ?? [])]);
    expect(new Set(flags).size).to.equal(flags.length);
    expect(flags).to.include.members([
      '--data-dir',
      '--listen',
      '--uid-range-first',
      '--pool-replica-semantics',
    ]);
  });

  it('finds the data folder by flag, variable, file or default, in that order', () => {
    const file = aFile('dataDir: /from/file\n');

    expect(
      dataDirFrom({ SANDPOOL_DATA_DIR: '/from/variable', SANDPOOL_CONFIG: file }, '/from/flag'),
    ).to.equal('/from/flag');
    expect(dataDirFrom({ SANDPOOL_DATA_DIR: '/from/variable', SANDPOOL_CONFIG: file })).to.equal(
      '/from/variable',
    );
    expect(dataDirFrom({ SANDPOOL_CONFIG: file })).to.equal('/from/file');
    expect(dataDirFrom({ HOME: '/home/someone' })).to.equal(
      process.getuid?.() === 0 ? '/var/lib/sandpool' : '/home/someone/.local/share/sandpool',
    );
  });
});
