import { join, relative, sep } from 'node:path';

export interface StartUp {
  readonly address: string;
  readonly dataDir: string;
  readonly usualDataDir: boolean;
  /** Absolute path of `bin/sandpool`. */
  readonly command: string;
  readonly workingDir: string;
  readonly poolName: string;
  readonly secretsDir?: string;
  readonly consoleLink?: string;
  readonly isTerminal: boolean;
}

export const readyText = (startUp: StartUp): string => {
  if (startUp.secretsDir !== undefined)
    return replicaText(startUp.address, join(startUp.secretsDir, 'admin.key'));
  const sandpool = commandOf(startUp);
  const keys = join(startUp.dataDir, 'keys');
  return [
    '',
    `Sandpool is ready at ${startUp.address}`,
    `Keys: ${join(keys, 'tenant.key')} (tenant), ${join(keys, 'admin.key')} (admin)`,
    ...(startUp.consoleLink === undefined
      ? []
      : [
          startUp.isTerminal
            ? `Console, once and within five minutes: ${startUp.consoleLink}`
            : `A link to the console, for one browser: ${sandpool} console login`,
        ]),
    'Try, from another terminal:',
    `  ${sandpool} run -- uname -a`,
    `  curl -H "SERVICE-API-KEY: $(cat ${quoted(join(keys, 'tenant.key'))})" -H ` +
      `'content-type: application/json' -d '{"poolName":"${startUp.poolName}"}' ` +
      `${startUp.address}/sandboxes`,
    `  ${sandpool} shell`,
    '',
  ].join('\n');
};

const replicaText = (address: string, adminKey: string): string =>
  [
    '',
    `Sandpool is ready at ${address}`,
    `Admin key: ${adminKey}. To create a key for a user of a team, whose namespace must exist:`,
    `  curl -H "SERVICE-API-KEY: $(cat ${quoted(adminKey)})" -H 'content-type: ` +
      `application/json' -d '{"team":"TEAM","user":"USER"}' ${address}/admin/api-keys`,
    '',
  ].join('\n');

export const stoppedText = (sandboxesLeft: number, startUp: StartUp): string =>
  sandboxesLeft === 0 || startUp.secretsDir !== undefined
    ? 'Sandpool has stopped; ' +
      `${sandboxesLeft === 0 ? 'no sandbox is left' : 'the sandboxes go on'}.\n`
    : `Sandpool has stopped; ${sandboxesLeft} ` +
      `${sandboxesLeft === 1 ? 'sandbox is' : 'sandboxes are'} left and will be found ` +
      `again. To end them: ${commandOf(startUp)} stop --all\n`;

const commandOf = ({ command, workingDir, dataDir, usualDataDir }: StartUp): string => {
  const near = relative(workingDir, command);
  const program = quoted(near.startsWith('..') ? command : `.${sep}${near}`);
  return usualDataDir ? program : `SANDPOOL_DATA_DIR=${quoted(dataDir)} ${program}`;
};

const quoted = (text: string): string =>
  /^[A-Za-z0-9_./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
