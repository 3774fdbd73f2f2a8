/**
 * The server of src/http/e2b/interpreter, for the template `code-interpreter-v1` of
 * config/templates and of the chart.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { deflateSync, inflateSync } from 'node:zlib';
import type { GeneratedFiles } from './generated-files.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SOURCES = `${ROOT}src/http/e2b/interpreter/`;
const OF_CHART = 'deploy/helm/sandpool/files/code-interpreter.json';
const TEMPLATE = 'config/templates/code-interpreter-v1.json';

const MODULES = [
  'events',
  'charts',
  'formats',
  'engines',
  'images',
  'runner',
  'executions',
  'processes',
  'contexts',
  'server',
];
/** No file in the sandbox's home is taken for a module of Python. */
const LOADER =
  'import sys; sys.path[:1] = []; import base64, zlib; ' +
  'exec(zlib.decompress(base64.b64decode("".join(sys.argv[1:]))))';
/** An argument of a template's command may have 8,192 characters. */
const PIECE = 8_000;

const program = (): string => {
  const sources = Object.fromEntries(
    MODULES.map((name) => [name, readFileSync(`${SOURCES}${name}.py`, 'utf8')]),
  );
  const begun = readFileSync(`${SOURCES}boot.py`, 'utf8');
  return `LOADER = ${JSON.stringify(LOADER)}\nSOURCES = ${JSON.stringify(sources)}\n${begun}`;
};

/** Only if there is a python3. */
const packed = (): readonly string[] => {
  const text = deflateSync(program(), { level: 9 }).toString('base64');
  const pieces = text.match(new RegExp(`.{1,${PIECE}}`, 'g')) ?? [];
  return ['python3', '-c', LOADER, ...pieces];
};

const unpacked = ([, , loader, ...pieces]: readonly string[]): string | undefined =>
  loader === LOADER
    ? inflateSync(Buffer.from(pieces.join(''), 'base64')).toString('utf8')
    : undefined;

const templateOf = (command: readonly string[]) => ({
  apiVersion: 'sandpool.dev/v1alpha1',
  kind: 'SandboxTemplate',
  metadata: { name: 'code-interpreter-v1' },
  spec: {
    description:
      'Runs code of E2B’s code interpreter, with this machine’s python3 of /usr. One cpu, 512 MiB, no network.',
    containers: [
      {
        name: 'main',
        image: 'host',
        command,
        readinessProbe: { tcpSocket: { port: 49_999 }, periodSeconds: 300 },
        resources: { limits: { cpu: '1', memory: '512Mi' } },
      },
    ],
    idleTimeout: '30m',
    network: 'none',
  },
});

export const interpreterOfChart = (): readonly string[] =>
  JSON.parse(readFileSync(ROOT + OF_CHART, 'utf8')) as readonly string[];

/** Equal sources keep their command: compression depends on the version of Node. */
export const interpreterFiles = (): GeneratedFiles => {
  const kept = interpreterOfChart();
  const command = unpacked(kept) === program() ? kept : packed();
  return new Map([
    [TEMPLATE, `${JSON.stringify(templateOf(command), null, 2)}\n`],
    [OF_CHART, `${JSON.stringify(command, null, 2)}\n`],
  ]);
};
