import { expect } from 'chai';
import { dirname, join } from 'node:path';
import { cyclesOf, partOf, readSourceTree } from './source-tree.ts';
import { importsOf, scanCode } from '../../script/source-code.ts';

/** The rooms of src/. Each may import the rooms before it (ARCHITECTURE.md, rooms). */
const ROOMS = [
  ...['lib', 'model', 'machines', 'contracts', 'actors', 'services', 'http', 'fleet'],
  ...['embedded', 'k8s', 'redis', 'daemon', 'main.ts', 'cli'],
];

/** Rooms and folders that may import less: these alone, besides themselves. */
const NARROW: Readonly<Record<string, readonly string[]>> = {
  machines: ['model', 'lib'],
  contracts: ['model', 'lib'],
  'services/audit': ['contracts', 'lib'],
  'services/identity': ['contracts', 'model', 'lib'],
  'services/webhooks': ['contracts', 'model', 'lib'],
  http: [
    ...['actors/claim', 'actors/request', 'actors/sandbox/commands', 'actors/pool', 'actors/env'],
    ...['actors/views.ts', 'services', 'contracts', 'model', 'lib'],
  ],
  'fleet/link': ['contracts', 'model', 'lib'],
  embedded: ['contracts', 'model', 'lib'],
  k8s: ['contracts', 'model', 'lib'],
  redis: ['contracts', 'model', 'lib'],
  'daemon/config': ['model', 'lib'],
  'daemon/control': ['contracts'],
  'daemon/metrics': ['contracts', 'model', 'lib'],
  'daemon/process': ['contracts', 'model', 'lib'],
  'daemon/tracing': ['contracts', 'model', 'lib'],
  'main.ts': ['daemon', 'lib'],
  'cli/client': ['model', 'lib'],
  cli: ['services/audit', 'services/identity', 'daemon', 'main.ts', 'model', 'lib'],
};

/** What the command line loads only when it is asked to: the daemon's own code. */
const LAZY = /\bfrom\s*'[^']*\/(main|daemon\/end-all|daemon\/restore|doctor\/doctor)\.ts'/;

/** A static import of the part that loads OpenTelemetry's packages. */
const TRACING = /\bfrom\s*'[^']*\/tracing\/[^']*'/;

/**
 * Where the time of day comes into a process: the daemon's Clock, and the spawner, which is a
 * process of its own.
 */
const CLOCKS = ['embedded/system-clock.ts', 'embedded/spawner/main.ts'];

/** What the spawner loads: its own code, and the reader of what holders of processes say. */
const SPAWNER_KNOWS = ['embedded/spawner/', 'lib/', 'contracts/agent/'];

/** Tests by nature, which a command starts; and the page that a test compares. */
const TESTS_IN_SCRIPT = [
  ...['chaos.ts', 'chaos-fleet.ts', 'chaos-kubernetes.ts', 'newer-sdks.ts', 'api-examples.ts'],
];

/**
 * What http knows of the contracts besides what watches requests (its clock, log, metrics, traces,
 * audit): data that it shows, and errors that it gives a status. Whatever does something stands
 * behind an operation.
 */
const HTTP_KNOWS: Readonly<Record<string, readonly string[]>> = {
  'audit.ts': ['AuditEntry', 'AuditSink'],
  'clock.ts': ['Clock'],
  'files.ts': ['ByteRange', 'FileEvent', 'FileKind', 'FilePage', 'FileStat', 'FileVersion'],
  'log.ts': ['LOG_LEVELS', 'Log'],
  'metrics.ts': ['Metrics', 'silentMetrics'],
  'not-done.ts': ['NotDone'],
  'record-store.ts': ['RecordExists'],
  'sandbox-driver.ts': [
    'ContainerGone',
    'DefinitionRefused',
    'ExecOutcome',
    'InstanceGone',
    'LeaseLost',
    'LogBatch',
    'LogLine',
    'LogsGone',
    'NoPlace',
    'NotJoinable',
    'OutcomeUnknown',
    'PortConnection',
    'PortUnreachable',
    'RecordConflict',
  ],
  'tracing.ts': ['OnStep', 'OngoingTrace', 'TraceScope', 'Tracer'],
  'volumes.ts': ['Volume'],
};

const CONTRACT_IMPORT = /\bimport (?:type )?\{([^}]*)\} from '[^']*\/contracts\/([^']*)'/g;

/** Name, what it extends, members. */
const INTERFACE = /^(?:export )?interface (\w+)([^{]*)\{\n(.*?)^\}/gms;

const TYPE_IMPORT = /\bimport type\b[^;]*;/g;

const MACHINE_BANS =
  /\b(Date|setTimeout|setInterval|setImmediate|queueMicrotask|performance|process|globalThis|crypto|fetch)\b|\bMath\.random\b|\b(invoke|spawn|spawnChild|after)\b\s*[:(]/;

/** Says whether a path is a folder or file, or below it. */
const isIn = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(`${folder}/`);

describe('the source tree', () => {
  const files = readSourceTree();

  const offenders = (pattern: RegExp, allowed: (path: string) => boolean): string[] =>
    files
      .filter(({ path }) => !allowed(path))
      .flatMap(({ path, codeOnly }) =>
        codeOnly
          .split('\n')
          .flatMap((line, index) =>
            pattern.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [],
          ),
      );

  it('contains files', () => {
    expect(files.map(({ path }) => path)).to.include.members([
      'daemon/config/config.ts',
      'main.ts',
      'daemon/create-daemon.ts',
      'model/sandbox.ts',
    ]);
    expect(files.find(({ path }) => path === 'main.ts')?.imports).to.include(
      'daemon/create-daemon.ts',
    );
  });

  it('imports earlier rooms only', () => {
    const wrong = files.flatMap(({ path, part, imports }) =>
      imports
        .filter((target) => ROOMS.indexOf(partOf(target)) > ROOMS.indexOf(part))
        .map((target) => `${path} → ${target}`),
    );

    expect(wrong).to.deep.equal([]);
  });

  it('limits the imports of some folders', () => {
    const wrong = files.flatMap(({ path, imports }) =>
      Object.entries(NARROW)
        .filter(([folder]) => isIn(path, folder))
        .flatMap(([folder, may]) =>
          imports
            .filter((target) => ![folder, ...may].some((each) => isIn(target, each)))
            .map((target) => `${path} → ${target}`),
        ),
    );

    expect(wrong).to.deep.equal([]);
  });

  it('lets http call operations, and nothing else', () => {
    const wrong = files
      .filter(({ path }) => isIn(path, 'http') && !isIn(path, 'http/e2b'))
      .flatMap(({ path, withStrings }) =>
        [...withStrings.matchAll(CONTRACT_IMPORT)].flatMap(([, names = '', contract = '']) =>
          names
            .split(',')
            .map((name) => name.trim().replace(/^type /, ''))
            .filter((name) => name !== '' && !HTTP_KNOWS[contract]?.includes(name))
            .map((name) => `${path} → ${contract}: ${name}`),
        ),
      );

    expect(wrong).to.deep.equal([]);
  });

  it('has thirteen rooms', () => {
    expect([...new Set(files.map(({ part }) => part))].toSorted()).to.deep.equal(ROOMS.toSorted());
  });

  it('is free of import cycles', () => {
    expect(cyclesOf(files).map((cycle) => cycle.join(' → '))).to.deep.equal([]);
  });

  it('loads the daemon from the command line on demand', () => {
    const eager = files.filter(
      ({ part, withStrings }) => part === 'cli' && LAZY.test(withStrings.replace(TYPE_IMPORT, '')),
    );

    expect(eager.map(({ path }) => path)).to.deep.equal([]);
  });

  it('loads OpenTelemetry only if a collector is configured', () => {
    const eager = files.filter(
      ({ path, withStrings }) =>
        !isIn(path, 'daemon/tracing') && TRACING.test(withStrings.replace(TYPE_IMPORT, '')),
    );

    expect(eager.map(({ path }) => path)).to.deep.equal([]);
  });

  it('separates scripts and tools from the tests', () => {
    const wrong = ['bench', 'local-cluster', 'script', 'simulation'].flatMap((folder) =>
      readSourceTree(folder).flatMap(({ path, imports }) =>
        imports
          .filter((target) => target.startsWith('../test/') && !TESTS_IN_SCRIPT.includes(path))
          .map((target) => `${folder}/${path} → ${target}`),
      ),
    );

    expect(wrong).to.deep.equal([]);
  });

  it('limits the local cluster to imports of the product', () => {
    const wrong = readSourceTree('local-cluster').flatMap(({ path, imports }) =>
      imports
        .filter((target) => /^\.\.\/(?!src\/)/.test(target))
        .map((target) => `${path} → ${target}`),
    );

    expect(wrong).to.deep.equal([]);
  });

  it("separates the spawner from the daemon's code", () => {
    const wrong = files
      .filter(({ path }) => path.startsWith('embedded/spawner/'))
      .flatMap(({ path, withStrings }) =>
        importsOf({ withStrings: withStrings.replace(TYPE_IMPORT, ''), codeOnly: '' })
          .filter((name) => name.startsWith('.'))
          .map((name) => join(dirname(path), name))
          .filter((name) => !SPAWNER_KNOWS.some((room) => name.startsWith(room)))
          .map((name) => `${path} → ${name}`),
      );

    expect(wrong).to.deep.equal([]);
  });

  it('keeps clocks, timers, randomness, I/O and actors out of the machines', () => {
    const machines = (path: string): boolean => path.startsWith('machines/');

    expect(offenders(MACHINE_BANS, (path) => !machines(path))).to.deep.equal([]);
    expect(
      files
        .filter(({ path }) => machines(path))
        .flatMap(({ packages }) => packages)
        .filter((name) => name !== 'xstate'),
    ).to.deep.equal([]);
  });

  it('keeps I/O out of the model', () => {
    const io =
      /^node:(fs|net|http|https|http2|child_process|worker_threads|timers|dgram|os|dns|tls|stream|process)/;

    expect(
      files
        .filter(({ part }) => part === 'model')
        .flatMap(({ path, packages }) =>
          packages.filter((name) => io.test(name)).map((name) => `${path} → ${name}`),
        ),
    ).to.deep.equal([]);
  });

  it('uses each framework in its own part only', () => {
    const homes: Readonly<Record<string, readonly string[]>> = {
      xstate: ['machines', 'actors'],
      koa: ['http'],
      '@koa/router': ['http'],
      '@photostructure/sqlite': ['embedded'],
      commander: ['cli'],
      'eventsource-parser': ['cli/client', 'http', 'fleet'],
      ioredis: ['redis'],
      redlock: ['redis'],
      'prom-client': ['daemon/metrics'],
      pino: ['daemon/process'],
      '@node-rs/argon2': ['services/identity'],
      'openid-client': ['services/identity'],
      yaml: ['daemon/config', 'cli', 'http'],
      undici: ['k8s'],
      '@kubernetes/client-node': ['k8s'],
      '@opentelemetry/api': ['daemon/tracing'],
      '@opentelemetry/exporter-trace-otlp-http': ['daemon/tracing'],
      '@opentelemetry/otlp-exporter-base': ['daemon/tracing'],
      '@opentelemetry/resources': ['daemon/tracing'],
      '@opentelemetry/sdk-trace-base': ['daemon/tracing'],
    };
    const wrong = files.flatMap(({ path, packages }) =>
      packages
        .filter((name) => homes[name]?.every((home) => !isIn(path, home)))
        .map((name) => `${path} → ${name}`),
    );

    expect(wrong).to.deep.equal([]);
  });

  it('reads the environment in one file of the configuration only', () => {
    expect(
      offenders(
        /\bprocess\s*\.\s*env\b|\bprocess\[/,
        (path) => path === 'daemon/config/environment.ts',
      ),
    ).to.deep.equal([]);
    expect(
      files
        .filter(({ withStrings }) =>
          /\benv\b[^}]*\}\s*(=\s*process\b|from\s*'node:process')/.test(withStrings),
        )
        .map(({ path }) => path),
    ).to.deep.equal([]);
  });

  it('reads the time of day from the Clock only', () => {
    expect(
      offenders(
        /\bDate\.now\b|\bnew Date\(\s*\)/,
        (path) =>
          CLOCKS.includes(path) || path.startsWith('cli/') || path.startsWith('daemon/doctor/'),
      ),
    ).to.deep.equal([]);
  });

  it('writes to the console in the command line only', () => {
    expect(offenders(/(?<![.\w])console\s*\./, (path) => path.startsWith('cli/'))).to.deep.equal(
      [],
    );
  });

  it('avoids `any`', () => {
    expect(offenders(/(:|<|\bas|,|\|)\s*any\b/, () => false)).to.deep.equal([]);
    expect(files.filter(({ path }) => path.endsWith('.js'))).to.deep.equal([]);
  });

  it('limits rooms to 25 files', () => {
    const rooms = new Map<string, number>();
    for (const { path } of files) rooms.set(dirname(path), (rooms.get(dirname(path)) ?? 0) + 1);

    expect([...rooms].filter(([, size]) => size > 25)).to.deep.equal([]);
  });

  it('limits interfaces to 20 methods and 10 dependencies', () => {
    const wide = files.flatMap(({ path, withStrings }) =>
      [...withStrings.matchAll(INTERFACE)].flatMap(([, name = '', above = '', body = '']) => {
        const methods = [...body.matchAll(/^ {2}\w+\??[(<]/gm)].length;
        const members = [...body.matchAll(/^ {2}(?:readonly )?\w+\??[(<:]/gm)].length;
        const picked = [...above.matchAll(/'\w+'/g)].length;
        const hands = /(Deps|Parts)$/.test(name) ? members + picked : 0;
        return methods > 20 || hands > 10 ? [`${path}: ${name} ${methods} ${hands}`] : [];
      }),
    );

    expect(wide).to.deep.equal([]);
  });

  it('limits lines to 100 characters', () => {
    const wide = files
      .filter(({ path }) => !path.includes('/generated/'))
      .flatMap(({ path, text }) =>
        text
          .split('\n')
          .flatMap((line, index) => (line.length > 100 ? [`${path}:${index + 1}`] : [])),
      );

    expect(wide).to.deep.equal([]);
  });

  it('avoids default exports and barrel files', () => {
    expect(offenders(/^export default\b/, () => false)).to.deep.equal([]);
    expect(
      files.filter(({ path }) => /(^|\/)index\.ts$/.test(path)).map(({ path }) => path),
    ).to.deep.equal([]);
  });
});

describe('the scanner behind these rules', () => {
  it('distinguishes code from comments, strings, templates and regular expressions', () => {
    const source = [
      "const a = 'process.env'; // process.env",
      '/* Date */ const b = /[/"]Date/.test(`Date ${Date.now()} Date`);',
      'const c = 6 / 2 / Math.random();',
      "const d = `x ${ { e: `y ${'Date'}` } } Date`; invoke()",
    ].join('\n');

    const { codeOnly } = scanCode(source);

    expect(codeOnly.split('\n').map((line) => line.replaceAll(/\s+/g, ' ').trim())).to.deep.equal([
      "const a = ' ';",
      'const b = / /.test(` ${Date.now()} `);',
      'const c = 6 / 2 / Math.random();',
      "const d = ` ${ { e: ` ${' '}` } } `; invoke()",
    ]);
    expect(codeOnly.length).to.equal(source.length);
  });

  it('finds every form of import', () => {
    const source =
      "import a from './a.ts';\nimport './b.ts';\nimport {\n  c,\n} from './c.ts';\nexport { d } from './d.ts';\nawait import('./e.ts'); // import './f.ts'\n";

    expect(importsOf(scanCode(source))).to.deep.equal([
      './a.ts',
      './b.ts',
      './c.ts',
      './d.ts',
      './e.ts',
    ]);
  });

  it('finds cycles', () => {
    const file = (path: string, ...imports: string[]) => ({ path, imports });

    expect(cyclesOf([file('a', 'b', 'c'), file('b', 'c'), file('c')])).to.deep.equal([]);
    expect(cyclesOf([file('a', 'b'), file('b', 'c'), file('c', 'b')])).to.deep.equal([
      ['b', 'c', 'b'],
    ]);
  });

  it('recognizes what machines must not do', () => {
    for (const line of [
      'Date.now()',
      'setTimeout(x)',
      'Math.random()',
      'after: { 10: x }',
      'invoke: {',
      'spawn(x)',
      'process.pid',
    ])
      expect(line).to.match(MACHINE_BANS);
    for (const line of ['update', 'afterwards: 1', 'claimedAfter(x)', 'deadline'])
      expect(line).to.not.match(MACHINE_BANS);
  });
});
