import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { SandpoolClient } from '../client/sandpool-client.ts';
import { plainDataDir, variable } from '../../daemon/config/environment.ts';
import { readPidFile } from '../../daemon/process/pid-file.ts';
import type { CliContext } from './context.ts';
import { printable } from './printable.ts';
import { CliFailure, START_HINT } from './failure.ts';

export interface ConnectionOptions {
  readonly server?: string;
  readonly keyFile?: string;
  readonly dataDir?: string;
  readonly admin?: boolean;
  readonly namespace?: string;
  readonly waitApproval?: boolean;
}

export const addConnectionOptions = (command: Command): Command =>
  command
    .option(
      '--server <url>',
      "address of the daemon [SANDPOOL_SERVER]; by default the local daemon's",
    )
    .option(
      '--key-file <file>',
      'file with the API key [SANDPOOL_API_KEY_FILE, or the key itself in SANDPOOL_API_KEY]',
    )
    .option('--data-dir <dir>', 'data folder of the local daemon [SANDPOOL_DATA_DIR]')
    .option('--admin', 'use the admin key of the local daemon')
    .option('--wait-approval', 'if a person must approve the request, wait for that');

export const addNamespacedOptions = (command: Command): Command =>
  addConnectionOptions(command).option(
    '--namespace <namespace>',
    'namespace of the pool or env, if it is not the key’s, for an admin',
  );

/** Close the client after use. */
export const connect = async (
  options: ConnectionOptions,
  { env, stderr }: CliContext,
): Promise<SandpoolClient> => {
  const named = options.server ?? variable(env, 'SANDPOOL_SERVER');
  const server = named === undefined ? await localServer(options, env) : parseServer(named);
  return new SandpoolClient({
    server,
    namespace: options.namespace,
    apiKey: await findKey(options, env, server),
    onApproval: options.waitApproval
      ? ({ approvalId, summary, expiresAt, clusterID }) =>
          void stderr.write(
            `sandpool: waits for approval: ${printable(summary)}\n  an operator can decide ` +
              `until ${expiresAt}, at ` +
              `${clusterID === undefined ? server.origin : `the console of ${clusterID}: `}` +
              `/console/approvals/${approvalId}\n`,
          )
      : undefined,
    onWarning: (text) =>
      void stderr.write(
        `sandpool: ${text}${text.startsWith('unknown ') ? '; it was ignored' : ''}\n`,
      ),
  });
};

/** Reads a configuration file only if it may name the folder. */
export const dataDirOf = async (
  options: Pick<ConnectionOptions, 'dataDir'> & { readonly config?: string },
  env: CliContext['env'],
): Promise<string> => {
  const plain =
    options.config === undefined || options.dataDir !== undefined
      ? plainDataDir(env, options.dataDir)
      : undefined;
  if (plain !== undefined) return plain;
  const { loadConfig } = await import('../../daemon/config/config.ts');
  return loadConfig({
    env,
    argvOptions: options.config === undefined ? {} : { config: options.config },
  }).config.dataDir;
};

const localServer = async (options: ConnectionOptions, env: CliContext['env']): Promise<URL> => {
  const dataDir = await dataDirOf(options, env);
  const daemon = readPidFile(dataDir);
  if (daemon) return parseServer(daemon.address);
  throw new CliFailure(`no daemon is running on the data folder ${dataDir}`, [
    START_HINT,
    'or name a running daemon with --server URL or --data-dir DIR',
  ]);
};

const parseServer = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    !url ||
    !/^https?:$/.test(url.protocol) ||
    url.search !== '' ||
    url.hash !== '' ||
    url.username !== '' ||
    url.password !== ''
  ) {
    throw new CliFailure(
      'the server’s address must be an http or https URL without user and query, such as ' +
        'http://127.0.0.1:8080',
    );
  }
  return url;
};

const findKey = async (
  options: ConnectionOptions,
  env: CliContext['env'],
  server: URL,
): Promise<string> => {
  if (options.admin) return await localKey('admin', { options, env, server });
  const file =
    options.keyFile ??
    (variable(env, 'SANDPOOL_API_KEY') === undefined
      ? variable(env, 'SANDPOOL_API_KEY_FILE')
      : undefined);
  if (file !== undefined) return await readKey(file);
  const given = variable(env, 'SANDPOOL_API_KEY');
  if (given !== undefined) return checkedKey(given, 'SANDPOOL_API_KEY');
  return await localKey('tenant', { options, env, server });
};

/** One of the two first keys, which are used only for local addresses. */
const localKey = async (
  name: 'admin' | 'tenant',
  {
    options,
    env,
    server,
  }: { readonly options: ConnectionOptions; readonly env: CliContext['env']; readonly server: URL },
): Promise<string> => {
  if (!LOOPBACK.test(server.hostname)) {
    throw new CliFailure(`no key for ${server.origin}`, [
      'name a key with --key-file FILE, SANDPOOL_API_KEY_FILE or SANDPOOL_API_KEY',
    ]);
  }
  return await readKey(join(await dataDirOf(options, env), 'keys', `${name}.key`));
};

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

const readKey = async (file: string): Promise<string> => {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw unreadable(file, error);
  });
  return checkedKey(text, file);
};

const checkedKey = (text: string, from: string): string => {
  const key = text.trim();
  if (!/^[\x21-\x7e]{1,512}$/.test(key)) throw new CliFailure(`there is no API key in ${from}`);
  return key;
};

const unreadable = (file: string, error: unknown): CliFailure => {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT')
    return new CliFailure(`${file} does not exist`, [
      'name a key with --key-file FILE, or the data folder with --data-dir DIR',
    ]);
  if (code === 'EACCES')
    return new CliFailure(`this user may not read ${file}`, [
      'run this command as the daemon’s user, or name your own key with --key-file FILE',
    ]);
  return new CliFailure(
    `${file} can’t be read: ${error instanceof Error ? error.message : String(error)}`,
    [],
    { cause: error },
  );
};
