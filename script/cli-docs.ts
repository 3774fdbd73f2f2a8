/** Makes docs/reference/command-line.md from the help of every command. */
import type { Command } from 'commander';
import { Writable } from 'node:stream';
import { COMMANDS } from '../src/cli/command-table.ts';
import { program } from '../src/cli/program.ts';
import { configFlags } from '../src/daemon/config/config.ts';

const WIDTH = 100;
const SETTINGS = new Set(
  configFlags()
    .map(({ flags }) => flags)
    .filter((flags) => !/^--(config|data-dir|listen) /.test(flags)),
);

const PROSE = `
<!-- Written by script/cli-docs.ts from the help of the commands. -->

# The command line

\`bin/sandpool\` is the daemon (\`serve\`) and its client. \`sandpool --help\`, and \`--help\` after any command, print the same as
this page.

- **Which daemon.** \`--server URL\` or \`SANDPOOL_SERVER\`; else the daemon of the data folder, which \`--data-dir\`,
  \`SANDPOOL_DATA_DIR\` or \`SANDPOOL_CONFIG\` names.
- **Which key.** \`--key-file\`, \`SANDPOOL_API_KEY\` (the key itself) or \`SANDPOOL_API_KEY_FILE\`; else the tenant key of the data
  folder, and with \`--admin\` its admin key. These two are sent only to this machine.
- **Output.** \`-o table\`, \`wide\`, \`json\` or \`yaml\`. JSON and YAML are the answers of the service. Hints and progress go to
  standard error.
- **Exit codes.** 0 success · 1 failed or refused · 2 wrong command line · 128 + n ended by signal n. \`run\`, \`exec\` and
  \`shell\` exit with the command's exit code, and with 125 if Sandpool itself failed.
- **Settings.** Flags of \`serve\`, \`config print\` and \`doctor\` for settings are in [settings](settings.md).
- **Completion.** \`source <(sandpool completion bash)\`, the same for zsh, or \`sandpool completion fish | source\`.
`;

export const cliPage = async (): Promise<string> => {
  const nothing = { action: () => async () => {}, serviceAction: () => async () => {} };
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done() });
  const sections: string[] = [];
  for (const { name } of COMMANDS) {
    const root = await program([name], nothing, { stdout, stderr: stdout });
    const command = root.commands.find((candidate) => candidate.name() === name);
    if (!command) throw new Error(`there is no command ${name}`);
    sections.push(
      `## ${name}`,
      ...(membersOf(command).length === 0
        ? [helpOf(command)]
        : [
            `${command.description()}.`,
            ...membersOf(command).flatMap((member) => memberSections(member, name)),
          ]),
    );
  }
  return `${[PROSE.trim(), ...sections].join('\n\n')}\n`;
};

const membersOf = (command: Command): readonly Command[] =>
  command.commands.filter((member) => member.name() !== 'help');

/** Under their whole names. */
const memberSections = (member: Command, above: string): readonly string[] => {
  const name = `${above} ${member.name()}`;
  return membersOf(member).length === 0
    ? [`### ${name}`, helpOf(member)]
    : membersOf(member).flatMap((below) => memberSections(below, name));
};

/** Settings have their own page, and change more often. */
const helpOf = (command: Command): string => {
  let text = '';
  for (const option of command.options) if (SETTINGS.has(option.flags)) option.hideHelp();
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    getOutHelpWidth: () => WIDTH,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return `\`\`\`text\n${text.trim()}\n\`\`\``;
};
