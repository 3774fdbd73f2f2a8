import type { Command } from 'commander';
import { InvalidArgumentError } from 'commander';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ChainEnd } from '../../../services/audit/audit-chain.ts';
import { auditFiles, readHead } from '../../../services/audit/audit-folder.ts';
import { type AuditReport, verifyAudit } from '../../../services/audit/verify-audit.ts';
import type { Action } from '../../common/action.ts';
import { pluralize } from '../../show/pluralize.ts';
import { CliFailure } from '../../common/failure.ts';
import type { CliContext } from '../../common/context.ts';
import { leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { table } from '../../show/table.ts';

interface VerifyOptions extends OutputOptions {
  readonly dataDir?: string;
  readonly config?: string;
  readonly head?: ChainEnd;
  readonly anchors?: string;
}

/** Files are missing or unreadable. Faults in the files exit with 1. */
const UNREADABLE = 3;

/** Works without a running daemon. */
export const verifyLeaf = (action: Action): Command =>
  addOutputOption(
    leaf({
      usage: 'verify [file...]',
      summary:
        'Verifies that the audit is complete. Finds lines that were changed, removed or cut ' +
        'off, missing or misplaced files, and lines that the daemon could not write. Needs no ' +
        'running daemon. Reads the local daemon’s files by default, or the given files or ' +
        'folder. Exits with 0 if all is well, 1 if it finds a problem, 3 if it can’t read the ' +
        'files.',
      examples: [
        'sandpool audit verify',
        'sandpool audit verify --data-dir /var/lib/sandpool -o json',
        'sandpool audit verify /backup/audit',
        'sandpool audit verify --head 4711:9f86d0…',
        'sandpool audit verify --anchors /mnt/elsewhere/anchors',
      ],
    }),
  )
    .option('--data-dir <dir>', 'data folder of the daemon [SANDPOOL_DATA_DIR]')
    .option(
      '--config <file>',
      'the daemon’s file of settings, if it names the folder of the audit [SANDPOOL_CONFIG]',
    )
    .option(
      '--head <seq:hash>',
      'number and hash of a line that you stored elsewhere; finds a chain that was cut ' +
        'before that line, or rewritten',
      chainEnd,
    )
    .option(
      '--anchors <file>',
      'file of the lines that audit.anchor sent; text before them on a line, such as from a ' +
        'system log, is ignored',
    )
    .action(
      action(UNREADABLE, async (context, [files], options: VerifyOptions) => {
        const named = files as readonly string[];
        const { paths, head } =
          named.length === 0 ? inFolder(await folderOf(options, context)) : await namedFiles(named);
        const anchors = options.anchors === undefined ? [] : await anchorsIn(options.anchors);
        const report = await verifyAudit(paths, [
          ...[options.head ?? head ?? []].flat(),
          ...anchors,
        ]);
        await show(context, options, { value: report, text: () => textOf(report) });
        return report.findings.length === 0 ? 0 : 1;
      }),
    );

interface ToVerify {
  readonly paths: readonly string[];
  readonly head: ChainEnd | undefined;
}

/** Reads the head first, since a running daemon keeps writing. */
const inFolder = (folder: string): ToVerify => {
  const head = readHead(folder);
  const paths = auditFiles(folder);
  if (paths.length === 0)
    throw new CliFailure(`there is no audit in ${folder}`, [
      'name its files or its folder, or the data folder with --data-dir DIR',
    ]);
  return { paths, head };
};

const namedFiles = async (named: readonly string[]): Promise<ToVerify> => {
  const [only] = named;
  if (named.length === 1 && only !== undefined && (await stat(only)).isDirectory())
    return inFolder(only);
  return { paths: named, head: undefined };
};

const folderOf = async (
  { dataDir, config }: VerifyOptions,
  { env }: CliContext,
): Promise<string> => {
  const { loadConfig } = await import('../../../daemon/config/config.ts');
  const loaded = loadConfig({
    env,
    argvOptions: {
      ...(dataDir === undefined ? {} : { dataDir }),
      ...(config === undefined ? {} : { config }),
    },
  }).config;
  return loaded.audit.folder ?? join(loaded.dataDir, 'audit');
};

const anchorsIn = async (path: string): Promise<readonly ChainEnd[]> => {
  const found: ChainEnd[] = [];
  for await (const line of createInterface({
    input: createReadStream(path),
    crlfDelay: Infinity,
  })) {
    const [, seq, hash] = ANCHOR.exec(line) ?? [];
    if (seq !== undefined && hash !== undefined) found.push({ seq: Number(seq), hash });
  }
  if (found.length === 0)
    throw new CliFailure(`no line of ${path} ends with NUMBER:HASH`, [
      'name the file that audit.anchor writes',
    ]);
  return found;
};

const ANCHOR = /(?:^|\s)(\d{1,15}):([0-9a-f]{64})\s*$/;

const chainEnd = (text: string): ChainEnd => {
  const match = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text);
  if (match?.[2] === undefined)
    throw new InvalidArgumentError(
      'It must be the number of a line and its hash, 64 hexadecimal digits, as in 4711:9f86d0….',
    );
  return { seq: Number(match[1]), hash: match[2] };
};

const textOf = ({ findings, lines, files, first, last, crashes }: AuditReport): string => {
  const found =
    findings.length === 0
      ? ''
      : `${table(
          ['FOUND', 'WHERE', 'WHAT'],
          findings.map(({ kind, file, line, problem }) => [kind, `${file}:${line}`, problem]),
        )}\n`;
  const extent =
    first === undefined || last === undefined
      ? 'no audit lines'
      : `lines ${first} to ${last.seq}, the last with hash ${last.hash}`;
  const ended =
    crashes === 0
      ? ''
      : `${pluralize(crashes, 'run')} did not stop cleanly: the last lines of each may be ` +
        'missing\n';
  const earlier =
    first !== undefined && first > 1
      ? `lines before ${first} are in files that were deleted\n`
      : '';
  const verdict =
    findings.length === 0 ? 'the chain is complete' : pluralize(findings.length, 'finding');
  return (
    `${found}${pluralize(files, 'file')}, ${pluralize(lines, 'line')}: ` +
    `${extent}\n${earlier}${ended}${verdict}\n`
  );
};
