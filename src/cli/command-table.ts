import type { Command } from 'commander';
import type { Actions } from './common/action.ts';

/** Loads the module only when the command is used. */
export interface CommandEntry {
  readonly name: string;
  /** Repeats the text in the command's own help. */
  readonly summary: string;
  readonly load: (actions: Actions) => Promise<Command>;
}

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'Runs the daemon until SIGINT or SIGTERM',
    load: async ({ action }) => (await import('./commands/daemon/serve.ts')).serveLeaf(action),
  },
  {
    name: 'run',
    summary: 'Runs a command in a new sandbox, and deletes the sandbox afterwards',
    load: async ({ action }) => (await import('./commands/run.ts')).runLeaf(action),
  },
  {
    name: 'exec',
    summary: 'Runs a command in a running sandbox',
    load: async ({ action }) => (await import('./commands/exec.ts')).execLeaf(action),
  },
  {
    name: 'ps',
    summary: 'Lists the processes of a sandbox',
    load: async ({ serviceAction }) =>
      (await import('./commands/processes.ts')).psLeaf(serviceAction),
  },
  {
    name: 'attach',
    summary: 'Prints the output of a process in a sandbox',
    load: async ({ action }) => (await import('./commands/processes.ts')).attachLeaf(action),
  },
  {
    name: 'kill',
    summary: 'Signals a process of a sandbox',
    load: async ({ serviceAction }) =>
      (await import('./commands/processes.ts')).killLeaf(serviceAction),
  },
  {
    name: 'shell',
    summary: 'Opens a shell in a sandbox',
    load: async ({ action }) => (await import('./commands/shell.ts')).shellLeaf(action),
  },
  {
    name: 'sandboxes',
    summary: 'Lists, claims and deletes sandboxes',
    load: async ({ serviceAction }) =>
      (await import('./commands/sandboxes.ts')).sandboxesGroup(serviceAction),
  },
  {
    name: 'pools',
    summary: 'Lists, creates, changes and deletes pools',
    load: async ({ serviceAction }) =>
      (await import('./commands/pools/pools.ts')).poolsGroup(serviceAction),
  },
  {
    name: 'envs',
    summary: 'Lists, creates, changes and deletes envs, with their members and autoscaling groups',
    load: async ({ serviceAction }) =>
      (await import('./commands/pools/envs.ts')).envsGroup(serviceAction),
  },
  {
    name: 'templates',
    summary: 'Lists, creates, changes and deletes templates of pools',
    load: async ({ serviceAction }) =>
      (await import('./commands/pools/templates.ts')).templatesGroup(serviceAction),
  },
  {
    name: 'logs',
    summary: 'Prints the output of a sandbox’s main process',
    load: async ({ action }) => (await import('./commands/logs.ts')).logsLeaf(action),
  },
  {
    name: 'events',
    summary: 'Shows the events of a sandbox, oldest first',
    load: async ({ action }) => (await import('./commands/events.ts')).eventsLeaf(action),
  },
  {
    name: 'cp',
    summary: 'Copies a file or a folder into a running sandbox or out of it',
    load: async ({ action }) => (await import('./commands/cp.ts')).cpLeaf(action),
  },
  {
    name: 'pause',
    summary: 'Pauses sandboxes: they keep their memory, and their idle timeout stops',
    load: async ({ serviceAction }) =>
      (await import('./commands/pause.ts')).pauseLeaf(serviceAction),
  },
  {
    name: 'resume',
    summary: 'Resumes paused sandboxes, with their memory',
    load: async ({ serviceAction }) =>
      (await import('./commands/pause.ts')).resumeLeaf(serviceAction),
  },
  {
    name: 'wait',
    summary: 'Waits until a sandbox runs or has ended, or a pool is ready',
    load: async ({ serviceAction }) => (await import('./commands/wait.ts')).waitLeaf(serviceAction),
  },
  {
    name: 'keys',
    summary: 'Lists, creates and revokes API keys',
    load: async (actions) => (await import('./commands/keys.ts')).keysGroup(actions),
  },
  {
    name: 'approvals',
    summary: 'Shows requests that wait for approval, and explains the policy',
    load: async (actions) => (await import('./commands/approvals.ts')).approvalsGroup(actions),
  },
  {
    name: 'quotas',
    summary: 'Shows and sets the quotas of a user',
    load: async ({ serviceAction }) =>
      (await import('./commands/quotas.ts')).quotasGroup(serviceAction),
  },
  {
    name: 'instance-types',
    summary: 'Lists the instance types that pools may name',
    load: async ({ serviceAction }) =>
      (await import('./commands/catalogue.ts')).instanceTypesLeaf(serviceAction),
  },
  {
    name: 'volumes',
    summary: 'Lists the volumes that your sandboxes may mount',
    load: async ({ serviceAction }) =>
      (await import('./commands/catalogue.ts')).volumesLeaf(serviceAction),
  },
  {
    name: 'clusters',
    summary: 'Lists the clusters, lets clusters join, and removes them',
    load: async (actions) => (await import('./commands/clusters.ts')).clustersGroup(actions),
  },
  {
    name: 'nodes',
    summary: 'Empties a node of a Kubernetes cluster',
    load: async ({ action }) => (await import('./commands/nodes.ts')).nodesGroup(action),
  },
  {
    name: 'features',
    summary: 'Shows which optional features this deployment has',
    load: async ({ serviceAction }) =>
      (await import('./commands/catalogue.ts')).featuresLeaf(serviceAction),
  },
  {
    name: 'stats',
    summary: 'Counts all tenants’ sandboxes, for an admin',
    load: async ({ serviceAction }) =>
      (await import('./commands/catalogue.ts')).statsLeaf(serviceAction),
  },
  {
    name: 'top',
    summary:
      'Shows the busiest pools: idle, starting and running instances, and waiting claims, ' +
      'for an admin',
    load: async ({ serviceAction }) =>
      (await import('./commands/daemon/top.ts')).topLeaf(serviceAction),
  },
  {
    name: 'replicas',
    summary:
      'Lists the replicas with the shards that each leads and the epoch of each lease, for ' +
      'an admin',
    load: async ({ serviceAction }) =>
      (await import('./commands/daemon/replicas.ts')).replicasLeaf(serviceAction),
  },
  {
    name: 'debug',
    summary: 'Shows the state of a sandbox, pool, env or approval, for an admin',
    load: async ({ action }) => (await import('./commands/daemon/debug.ts')).debugGroup(action),
  },
  {
    name: 'audit',
    summary: 'Shows the audit, and verifies that it is complete',
    load: async (actions) => (await import('./commands/daemon/audit.ts')).auditGroup(actions),
  },
  {
    name: 'log-level',
    summary: 'Shows or changes the log level of the running daemon, for an admin',
    load: async ({ serviceAction }) =>
      (await import('./commands/daemon/log-level.ts')).logLevelLeaf(serviceAction),
  },
  {
    name: 'managers',
    summary: 'Shows the managers of this cluster, cuts them off and allows them again',
    load: async ({ serviceAction }) =>
      (await import('./commands/daemon/managers.ts')).managersGroup(serviceAction),
  },
  {
    name: 'console',
    summary: 'Opens the console, where people decide on approvals, and lists its sessions',
    load: async ({ action }) => (await import('./commands/daemon/console.ts')).consoleGroup(action),
  },
  {
    name: 'webhooks',
    summary: 'Lists messages about approvals that could not be delivered, and sends them again',
    load: async ({ action }) =>
      (await import('./commands/daemon/webhooks.ts')).webhooksGroup(action),
  },
  {
    name: 'operators',
    summary: 'Manages the people who log in to the console with a password',
    load: async ({ action }) =>
      (await import('./commands/daemon/operators.ts')).operatorsGroup(action),
  },
  {
    name: 'config',
    summary: 'Shows and checks the daemon’s settings',
    load: async ({ action }) => (await import('./commands/daemon/config.ts')).configGroup(action),
  },
  {
    name: 'doctor',
    summary:
      'Checks for problems that keep the daemon from working on this machine, and says how ' +
      'to fix them',
    load: async ({ action }) =>
      await (await import('./commands/daemon/doctor.ts')).doctorLeaf(action),
  },
  {
    name: 'backup',
    summary:
      'Writes a backup of the running local daemon to a file: its current database and its keys',
    load: async ({ action }) => (await import('./commands/daemon/backup.ts')).backupLeaf(action),
  },
  {
    name: 'restore',
    summary:
      'Restores the database and the keys from a backup into the data folder of a stopped daemon',
    load: async ({ action }) => (await import('./commands/daemon/restore.ts')).restoreLeaf(action),
  },
  {
    name: 'stop',
    summary: 'Stops the local daemon and its helper processes',
    load: async ({ action }) => (await import('./commands/daemon/stop.ts')).stopLeaf(action),
  },
  {
    name: 'completion',
    summary:
      'Prints a script that completes sandpool’s commands, options, and names of pools and ' +
      'sandboxes',
    load: async ({ action }) => (await import('./commands/completion.ts')).completionLeaf(action),
  },
];
