/** Written by script/client-types.ts from the OpenAPI document. What each operation takes and answers, and where it is. */
export type ProcessEvent =
  | ProcessEnvelope1
  | {
      data: string;
      /**
       * Given where `data` is base64, and no text.
       */
      encoding?: 'base64';
    }
  | {
      bytes?: number;
    }
  | {
      error: string;
      errorCode: string;
    };
export type FileContent = string;

/**
 * Each operation by its operationId.
 */
export interface Operations {
  /**
   * Whether the daemon runs
   */
  getHealth: {
    answer: Health;
  };
  /**
   * Whether the daemon can do its work, and how well it isolates
   */
  getReadiness: {
    answer: ReadinessReport;
  };
  /**
   * Claim an idle instance of a pool
   */
  claimSandbox: {
    body: ClaimSandboxBody;
    answer: SandboxEnvelope;
  };
  /**
   * List sandboxes, newest claim first
   */
  listSandboxes: {
    query?: {
      /**
       * Of this pool alone.
       */
      poolName?: string;
      /**
       * In this phase alone.
       */
      phase?: 'Idle' | 'Starting' | 'Running' | 'Stopping' | 'Failed' | 'Completed';
      /**
       * Of this namespace. Admins alone.
       */
      namespace?: string;
      /**
       * Of this team. Admins alone.
       */
      team?: string;
      /**
       * Of this user. Admins alone.
       */
      user?: string;
      /**
       * Of every tenant. Admins alone.
       */
      all?: boolean;
      /**
       * By the metadata of the claim, such as `metadata.job=42`: a parameter for each pair, all of which it must have. Then sandboxes that live are listed, and no finished ones.
       */
      metadata?: {
        [k: string]: string;
      };
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * How many to leave out first.
       */
      offset?: number;
    };
    answer: SandboxPage;
  };
  /**
   * Get a sandbox
   */
  getSandbox: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    answer: SandboxDetailEnvelope;
  };
  /**
   * Give a sandbox back, which ends it
   */
  deleteSandbox: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    answer: SandboxDeletion;
  };
  /**
   * Run the readiness probes of a sandbox
   */
  isReady: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    answer: IsReadyAnswer;
  };
  /**
   * Run a command and wait for its end
   */
  execInSandbox: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    body: ExecInSandboxBody;
    answer: ExecResult;
  };
  /**
   * Make a single-use token for the terminal
   */
  createExecToken: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    answer: ExecToken;
  };
  /**
   * Pause a sandbox, or have it go on
   */
  setSandboxState: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    body: SetSandboxStateBody;
    answer: SandboxEnvelope;
  };
  /**
   * Set how long the sandbox may sit idle
   */
  setIdleTimeout: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    body?: SetIdleTimeoutBody;
    answer: IdleTimeoutEnvelope;
  };
  /**
   * Read what a sandbox printed, or follow it
   */
  getSandboxLogs: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    query?: {
      /**
       * The container's name. There is one, so it need not be said.
       */
      container?: string;
      /**
       * The last so many lines.
       */
      tailLines?: number;
      /**
       * Nothing that was printed longer ago.
       */
      sinceSeconds?: number;
      /**
       * Each line with the time at which it was printed before it.
       */
      timestamps?: boolean;
      /**
       * Go on with what it prints, as Server-Sent Events, until the sandbox has ended.
       */
      follow?: boolean;
    };
    answer: SandboxLogs;
  };
  /**
   * Start a process, and read it at once or later
   */
  startProcess: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    query?: {
      /**
       * Have the process wait for this reader, by back-pressure, in place of dropping what it does not read in time.
       */
      pace?: boolean;
      /**
       * `base64`: all that was printed comes as base64, which costs both sides far less. Left out: as text where it can.
       */
      encoding?: 'base64';
    };
    body: StartProcessBody;
    answer: ProcessEnvelope;
  };
  /**
   * List the processes of a sandbox
   */
  listProcesses: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    answer: ProcessList;
  };
  /**
   * Show one process
   */
  getProcess: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
      /**
       * A process of the sandbox, by the id that its start answered.
       */
      processId: string;
    };
    answer: ProcessEnvelope;
  };
  /**
   * Kill a process, and forget it
   */
  deleteProcess: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
      /**
       * A process of the sandbox, by the id that its start answered.
       */
      processId: string;
    };
    answer: ProcessDeletion;
  };
  /**
   * Read what a process printed and prints
   */
  followProcess: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
      /**
       * A process of the sandbox, by the id that its start answered.
       */
      processId: string;
    };
    query?: {
      /**
       * Go on behind the event of this id; `latest`: with what comes from now on. Left out: from the beginning. `Last-Event-ID` wins over it.
       */
      from?: string;
      /**
       * Have the process wait for this reader, by back-pressure, in place of dropping what it does not read in time.
       */
      pace?: boolean;
      /**
       * `base64`: all that was printed comes as base64, which costs both sides far less. Left out: as text where it can.
       */
      encoding?: 'base64';
    };
    answer: ProcessEvent;
  };
  /**
   * Give a process input, or its end
   */
  writeToProcess: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
      /**
       * A process of the sandbox, by the id that its start answered.
       */
      processId: string;
    };
    body?: WriteToProcessBody;
    answer: ProcessEnvelope;
  };
  /**
   * Signal a process
   */
  signalProcess: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
      /**
       * A process of the sandbox, by the id that its start answered.
       */
      processId: string;
    };
    body: SignalProcessBody;
    answer: ProcessEnvelope;
  };
  /**
   * Give the terminal of a process another size
   */
  resizeProcess: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
      /**
       * A process of the sandbox, by the id that its start answered.
       */
      processId: string;
    };
    body: ResizeProcessBody;
    answer: ProcessEnvelope;
  };
  /**
   * Read a file, or a folder as an archive
   */
  readFile: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    query?: {
      /**
       * Absolute, at most 4,095 bytes, without a part `..`.
       */
      path: string;
      /**
       * `path` is base64 of its bytes, for names that are not UTF-8.
       */
      base64?: boolean;
      /**
       * Absent: the first container.
       */
      container?: string;
    };
    answer: FileContent;
  };
  /**
   * Write a file, or unpack an archive into a folder
   */
  writeFile: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    query?: {
      /**
       * Absolute, at most 4,095 bytes, without a part `..`.
       */
      path: string;
      /**
       * `path` is base64 of its bytes, for names that are not UTF-8.
       */
      base64?: boolean;
      /**
       * Absent: the first container.
       */
      container?: string;
      /**
       * Permission bits in octal. Absent: those of the file that is replaced, else 0644.
       */
      mode?: string;
      /**
       * `false`: 409 where something of that name is there.
       */
      overwrite?: boolean;
      /**
       * Make the folders that are missing above it.
       */
      parents?: boolean;
    };
    body: string;
    answer: WriteFileAnswer;
  };
  /**
   * Remove a file or a folder
   */
  removeFile: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    query?: {
      /**
       * Absolute, at most 4,095 bytes, without a part `..`.
       */
      path: string;
      /**
       * `path` is base64 of its bytes, for names that are not UTF-8.
       */
      base64?: boolean;
      /**
       * Absent: the first container.
       */
      container?: string;
      /**
       * A folder with all that is in it.
       */
      recursive?: boolean;
    };
    answer: RemoveFileAnswer;
  };
  /**
   * List a folder
   */
  listFiles: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    query?: {
      /**
       * Absolute, at most 4,095 bytes, without a part `..`.
       */
      path: string;
      /**
       * `path` is base64 of its bytes, for names that are not UTF-8.
       */
      base64?: boolean;
      /**
       * Absent: the first container.
       */
      container?: string;
      /**
       * 1: what is in the folder itself.
       */
      depth?: number;
      /**
       * Entries at most.
       */
      limit?: number;
      /**
       * Where to go on: the `nextCursor` of the page before.
       */
      cursor?: string;
    };
    answer: FileList;
  };
  /**
   * Rename a file or a folder
   */
  moveFile: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    body: MoveFileBody;
    answer: MoveFileAnswer;
  };
  /**
   * Make a folder
   */
  makeFolder: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    body: MakeFolderBody;
    answer: MakeFolderAnswer;
  };
  /**
   * Follow what changes in a folder
   */
  watchFiles: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    query?: {
      /**
       * Absolute, at most 4,095 bytes, without a part `..`.
       */
      path: string;
      /**
       * `path` is base64 of its bytes, for names that are not UTF-8.
       */
      base64?: boolean;
      /**
       * Absent: the first container.
       */
      container?: string;
      /**
       * What is below as well, at most 1,024 folders.
       */
      recursive?: boolean;
    };
    answer: FileEvent;
  };
  /**
   * List what happened to a sandbox
   */
  listSandboxEvents: {
    params: {
      /**
       * A sandbox of the caller's, by the id that its claim answered.
       */
      sandboxId: string;
    };
    answer: EventList;
  };
  /**
   * List what happened to a pool
   */
  listPoolEvents: {
    params: {
      /**
       * A pool of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: EventList;
  };
  /**
   * Follow what happens to one's sandboxes and pools
   */
  followEvents: {
    query?: {
      /**
       * Of every tenant. Admins alone.
       */
      all?: boolean;
    };
    answer: Event;
  };
  /**
   * Create a pool from a template, by name or inline
   */
  createPool: {
    body: CreatePoolBody;
    answer: PoolEnvelope;
  };
  /**
   * List pools, newest first
   */
  listPools: {
    query?: {
      /**
       * Of every tenant. Admins alone.
       */
      all?: boolean;
      /**
       * In this phase alone.
       */
      phase?: 'Pending' | 'Ready' | 'Scaling' | 'Updating' | 'Degraded' | 'Deleting' | 'Failed';
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * How many to leave out first.
       */
      offset?: number;
    };
    answer: PoolPage;
  };
  /**
   * Get a pool
   */
  getPool: {
    params: {
      /**
       * A pool of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: PoolEnvelope;
  };
  /**
   * Change a pool; what is not named stays
   */
  updatePool: {
    params: {
      /**
       * A pool of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    body?: UpdatePoolBody;
    answer: PoolEnvelope;
  };
  /**
   * Delete a pool; running sandboxes stay unless forced
   */
  deletePool: {
    params: {
      /**
       * A pool of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * End its running sandboxes too. `?force` alone is true.
       */
      force?: boolean;
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: PoolDeletion;
  };
  /**
   * Render a pool anew from its template
   */
  syncPool: {
    params: {
      /**
       * A pool of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: PoolEnvelope;
  };
  /**
   * Show what sync-template would apply
   */
  previewPoolSync: {
    params: {
      /**
       * A pool of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: PoolSyncPreview;
  };
  /**
   * Create an env without members
   */
  createEnv: {
    body: CreateEnvBody;
    answer: EnvEnvelope;
  };
  /**
   * List envs, newest first
   */
  listEnvs: {
    query?: {
      /**
       * Of every tenant. Admins alone.
       */
      all?: boolean;
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * How many to leave out first.
       */
      offset?: number;
    };
    answer: EnvPage;
  };
  /**
   * Get an env
   */
  getEnv: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: EnvEnvelope;
  };
  /**
   * Replace what an env says of itself
   */
  replaceEnv: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    body: ReplaceEnvBody;
    answer: EnvEnvelope;
  };
  /**
   * Merge a patch into an env
   */
  patchEnv: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    body?: PatchEnvBody;
    answer: EnvEnvelope;
  };
  /**
   * Delete an env with its members
   */
  deleteEnv: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * End its running sandboxes too. `?force` alone is true.
       */
      force?: boolean;
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: EnvDeletion;
  };
  /**
   * Render every member anew from the template
   */
  syncEnv: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: NarrowEnvEnvelope;
  };
  /**
   * Add a member to an env: a pool, and what sizes it
   */
  addMember: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    body?: AddMemberBody;
    answer: MemberEnvelope;
  };
  /**
   * List the pools of an env's members
   */
  listMembers: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: MemberList;
  };
  /**
   * Change a member; what is not named stays
   */
  updateMember: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
      /**
       * A member of it, by its pool's name.
       */
      pool: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    body?: UpdateMemberBody;
    answer: MemberEnvelope;
  };
  /**
   * Delete a member, its pool first
   */
  deleteMember: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
      /**
       * A member of it, by its pool's name.
       */
      pool: string;
    };
    query?: {
      /**
       * End its running sandboxes too. `?force` alone is true.
       */
      force?: boolean;
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: EnvDeletion;
  };
  /**
   * List the autoscaling groups of an env
   */
  listGroups: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: AutoscalingGroupList;
  };
  /**
   * Get an autoscaling group
   */
  getGroup: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
      /**
       * An autoscaling group of it.
       */
      groupName: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: AutoscalingGroupEnvelope;
  };
  /**
   * Change an autoscaling group; what is not named stays
   */
  updateGroup: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
      /**
       * An autoscaling group of it.
       */
      groupName: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    body?: UpdateGroupBody;
    answer: AutoscalingGroupEnvelope;
  };
  /**
   * Delete an autoscaling group; its members keep their size
   */
  deleteGroup: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
      /**
       * An autoscaling group of it.
       */
      groupName: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: AutoscalingGroupDeletion;
  };
  /**
   * List what an autoscaling group decided last, the newest first
   */
  listDecisions: {
    params: {
      /**
       * An env of the caller's. Admins may write `{namespace}/{name}` too, its `/` as `%2F`.
       */
      name: string;
      /**
       * An autoscaling group of it.
       */
      groupName: string;
    };
    query?: {
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: ScalingDecisionList;
  };
  /**
   * List the templates that pools may be made from, newest first
   */
  listTemplates: {
    query?: {
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * How many to leave out first.
       */
      offset?: number;
    };
    answer: TemplatePage;
  };
  /**
   * Get a template
   */
  getTemplate: {
    params: {
      name: string;
    };
    answer: TemplateEnvelope;
  };
  /**
   * Create a template
   */
  createTemplate: {
    body: CreateTemplateBody;
    answer: TemplateEnvelope;
  };
  /**
   * Change a template; what is not named stays
   */
  updateTemplate: {
    params: {
      name: string;
    };
    body?: UpdateTemplateBody;
    answer: TemplateEnvelope;
  };
  /**
   * Delete a template that no pool is made from
   */
  deleteTemplate: {
    params: {
      name: string;
    };
    answer: TemplateDeletion;
  };
  /**
   * Create a key for the caller
   */
  createApiKey: {
    body?: CreateApiKeyBody;
    answer: IssuedApiKey;
  };
  /**
   * List the caller's keys, newest first
   */
  listApiKeys: {
    query?: {
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * How many to leave out first.
       */
      offset?: number;
    };
    answer: ApiKeyPage;
  };
  /**
   * Revoke a key of the caller's; admins any of a namespace
   */
  deleteApiKey: {
    params: {
      /**
       * Of a key of the caller's.
       */
      keyId: string;
    };
    query?: {
      /**
       * Revoke what the key made too, and what that made. `?cascade` alone is true.
       */
      cascade?: boolean;
      /**
       * The namespace of what the path names, as lists show it; without it, that of the key. Admins alone.
       */
      namespace?: string;
    };
    answer: ApiKeyDeletion;
  };
  /**
   * Create a key for any team and user
   */
  createApiKeyForTenant: {
    body: CreateApiKeyForTenantBody;
    answer: IssuedApiKey;
  };
  /**
   * List the keys of all teams and users, newest first
   */
  listAllApiKeys: {
    query?: {
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * How many to leave out first.
       */
      offset?: number;
    };
    answer: ApiKeyPage;
  };
  /**
   * Revoke all keys of a user
   */
  deleteApiKeysOf: {
    query?: {
      /**
       * Of the user.
       */
      team: string;
      /**
       * All of whose keys go.
       */
      user: string;
      /**
       * Revoke what these keys made too, also keys of others. `?cascade` alone is true.
       */
      cascade?: boolean;
    };
    answer: ApiKeysDeletion;
  };
  /**
   * Revoke anyone's key, by its name
   */
  deleteApiKeyByName: {
    params: {
      /**
       * `{namespace}/{shortName}`, its `/` as `%2F`; or the short name alone.
       */
      name: string;
    };
    query?: {
      /**
       * Revoke what the key made too, and what that made. `?cascade` alone is true.
       */
      cascade?: boolean;
    };
    answer: ApiKeyDeletion;
  };
  /**
   * The same, with the name as two segments
   */
  deleteApiKeyByFullName: {
    params: {
      namespace: string;
      shortName: string;
    };
    query?: {
      /**
       * Revoke what the key made too, and what that made. `?cascade` alone is true.
       */
      cascade?: boolean;
    };
    answer: ApiKeyDeletion;
  };
  /**
   * Have a key count on all worker clusters
   */
  promoteApiKey: {
    params: {
      /**
       * `{namespace}/{shortName}`, its `/` as `%2F`; or the short name alone.
       */
      name: string;
    };
    answer: ApiKeyPromotion;
  };
  /**
   * The same, with the name as two segments
   */
  promoteApiKeyByFullName: {
    params: {
      namespace: string;
      shortName: string;
    };
    answer: ApiKeyPromotion;
  };
  /**
   * What the caller may have, and has
   */
  getQuotas: {
    answer: QuotaList;
  };
  /**
   * What a user may have, and has
   */
  getQuotasOf: {
    params: {
      /**
       * A DNS label.
       */
      team: string;
      /**
       * A DNS label.
       */
      user: string;
    };
    answer: QuotaList;
  };
  /**
   * Change what a user may have; what is not named stays
   */
  setQuotasOf: {
    params: {
      /**
       * A DNS label.
       */
      team: string;
      /**
       * A DNS label.
       */
      user: string;
    };
    body?: SetQuotasOfBody;
    answer: QuotaList;
  };
  /**
   * List the instance types that pools may name
   */
  listInstanceTypes: {
    answer: InstanceTypeList;
  };
  /**
   * List the volumes that the caller's sandboxes may mount
   */
  listVolumes: {
    answer: VolumeList;
  };
  /**
   * Which optional features this deployment has
   */
  getFeatureGates: {
    answer: FeatureGates;
  };
  /**
   * List the clusters there are
   */
  listClusters: {
    answer: ClusterList;
  };
  /**
   * Count everybody's sandboxes
   */
  getSandboxStatistics: {
    answer: SandboxStatistics;
  };
  /**
   * List requests that wait for a person, or waited, newest first
   */
  listApprovals: {
    query?: {
      /**
       * Of this status alone.
       */
      status?: 'pending' | 'approved' | 'denied' | 'expired' | 'consumed';
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * How many to leave out first.
       */
      offset?: number;
    };
    answer: ApprovalPage;
  };
  /**
   * Look at one of them
   */
  getApproval: {
    params: {
      /**
       * The `approvalId` of the refusal.
       */
      approvalId: string;
    };
    answer: ApprovalInFull;
  };
  /**
   * Approve or deny a request, in a console session
   */
  decideApproval: {
    params: {
      /**
       * The `approvalId` of the refusal.
       */
      approvalId: string;
    };
    body: DecideApprovalBody;
    answer: Approval;
  };
  /**
   * Who changed what lately, the newest first
   */
  listAudit: {
    query?: {
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * `nextCursor` of the answer before.
       */
      cursor?: string;
      namespace?: string;
      team?: string;
      user?: string;
      keyId?: string;
      /**
       * An operationId.
       */
      operation?: string;
      /**
       * By the status: below 400, below 500, above.
       */
      outcome?: 'done' | 'refused' | 'failed';
    };
    answer: AuditPage;
  };
  /**
   * Which replica leads which shard
   */
  getShards: {
    answer: ShardReport;
  };
  /**
   * What waits in a replica
   */
  getQueues: {
    query?: {
      /**
       * Of which replica: A name that `GET /debug/shards` shows. Left out: the one that answers.
       */
      replica?: string;
    };
    answer: QueuesReport;
  };
  /**
   * How what runs the sandboxes of a replica stands
   */
  getDriver: {
    query?: {
      /**
       * Of which replica: A name that `GET /debug/shards` shows. Left out: the one that answers.
       */
      replica?: string;
    };
    answer: DriverReport;
  };
  /**
   * How the mirrors of a replica stand
   */
  getReflectors: {
    query?: {
      /**
       * Of which replica: A name that `GET /debug/shards` shows. Left out: the one that answers.
       */
      replica?: string;
    };
    answer: ReflectorsReport;
  };
  /**
   * List the actors: sandboxes, pools, env members, autoscaling groups, open approvals
   */
  listActors: {
    query?: {
      /**
       * Of this kind alone: `sandbox`, `pool`, `member` (of an env), `group` (an autoscaling group) or `approval` (an open one).
       */
      kind?: 'sandbox' | 'pool' | 'member' | 'group' | 'approval';
      /**
       * In this state, or inside it, such as `stopping` or `idle.available`. `broken`: it has no actor, which threw again and again.
       */
      state?: string;
      /**
       * Of this pool: its uid, `{namespace}/{name}`, or a name in the caller's namespace.
       */
      pool?: string;
      /**
       * How many to show.
       */
      limit?: number;
      /**
       * Where to go on: the `next` of an earlier page.
       */
      cursor?: string;
    };
    answer: ActorPage;
  };
  /**
   * Look into one actor
   */
  getActor: {
    params: {
      /**
       * `sandbox`, `pool`, `member` (of an env), `group` (an autoscaling group) or `approval` (an open one).
       */
      kind: 'sandbox' | 'pool' | 'member' | 'group' | 'approval';
      /**
       * A sandbox's id; a pool's uid, `{namespace}/{name}` or name; `{env}/{name}` of a member or group, also with the namespace before it; an approval's id. Slashes as `%2F`.
       */
      key: string;
    };
    query?: {
      /**
       * Whose view: A name that `GET /debug/shards` shows. Left out: whoever leads the actor.
       */
      replica?: string;
    };
    answer: ActorReport;
  };
  /**
   * Follow the transitions of one actor
   */
  followActor: {
    params: {
      /**
       * `sandbox`, `pool`, `member` (of an env), `group` (an autoscaling group) or `approval` (an open one).
       */
      kind: 'sandbox' | 'pool' | 'member' | 'group' | 'approval';
      /**
       * A sandbox's id; a pool's uid, `{namespace}/{name}` or name; `{env}/{name}` of a member or group, also with the namespace before it; an approval's id. Slashes as `%2F`.
       */
      key: string;
    };
    answer: ActorTransition;
  };
  /**
   * Make one actor anew from its facts
   */
  rebuildActor: {
    params: {
      /**
       * `sandbox`, `pool`, `member` (of an env), `group` (an autoscaling group) or `approval` (an open one).
       */
      kind: 'sandbox' | 'pool' | 'member' | 'group' | 'approval';
      /**
       * A sandbox's id; a pool's uid, `{namespace}/{name}` or name; `{env}/{name}` of a member or group, also with the namespace before it; an approval's id. Slashes as `%2F`.
       */
      key: string;
    };
    query?: {
      /**
       * Whose view: A name that `GET /debug/shards` shows. Left out: whoever leads the actor.
       */
      replica?: string;
    };
    answer: ActorReport;
  };
  /**
   * The state chart of a kind of actor, with how many stand in each state
   */
  getMachine: {
    params: {
      /**
       * `sandbox`, `pool`, `member` (of an env), `group` (an autoscaling group) or `approval` (an open one).
       */
      kind: 'sandbox' | 'pool' | 'member' | 'group' | 'approval';
    };
    query?: {
      /**
       * Left out: what `Accept` asks for, else JSON.
       */
      format?: 'json' | 'mermaid' | 'svg';
    };
    answer: MachineReport;
  };
  /**
   * How much the answering replica logs
   */
  getLogLevel: {
    answer: LogLevelReport;
  };
  /**
   * Change how much the answering replica logs, for a while if told
   */
  setLogLevel: {
    body: SetLogLevelBody;
    answer: LogLevelReport;
  };
}
export interface Health {
  status: 'ok';
}
export interface ReadinessReport {
  status: 'ready' | 'not ready';
  /**
   * What keeps it from being ready; empty when it is.
   */
  problems: string[];
  /**
   * What works, but gives less than it should: see security.
   */
  warnings: string[];
  /**
   * The level in force: `cgroup-v2`, `cgroup-v1`, `prlimit` or `none`.
   */
  isolation: string;
}
export interface ClaimSandboxBody {
  /**
   * The pool to claim from. Without it the answer is 400 with the message `poolName is required`.
   */
  poolName: string;
  /**
   * End it after so long without activity; `"0"`, `0` and null are never. Left out: what the template says.
   */
  idleTimeout?: string | 0 | null;
  /**
   * Wait for so long for an instance where none is idle, first come first served. Left out or 0: the answer comes at once.
   */
  waitTimeoutSeconds?: number;
  /**
   * A call that needs the sandbox running ends its pause. Left out or false: such a call is 409.
   */
  autoResume?: boolean;
  /**
   * Variables of commands and terminals in the sandbox, over those of the template: at most 128, of 64 KiB together. The main process runs already, and does not have them. They are kept sealed, and never shown.
   */
  env?: {
    [k: string]: string;
  };
  /**
   * What the claim says of its sandbox, by which lists find it: at most 64 pairs, of 4 KiB together. Shown to whoever sees the sandbox: no place for secrets.
   */
  metadata?: {
    [k: string]: string;
  };
  /**
   * Files that are in the sandbox before the answer: at most 16, of 256 KiB together. Folders that are missing above them are made. Where one can not be written the claim is given back, and `detail.field` names it.
   *
   * @maxItems 16
   */
  files?: {
    /**
     * Absolute, at most 4,095 bytes, without a part `..`.
     */
    path: string;
    /**
     * What is in it: text, or what `encoding` says.
     */
    content: string;
    /**
     * `base64`: `content` is base64 of the bytes, with its padding. Left out: `utf8`.
     */
    encoding?: 'utf8' | 'base64';
    /**
     * Permission bits in octal. Left out: those of the file that is replaced, else 0644.
     */
    mode?: string;
  }[];
}
export interface SandboxEnvelope {
  sandbox: Sandbox;
}
/**
 * Status: `Starting` its process comes up · `Idle` unclaimed, ready or for the moment not ·
 * `Running` claimed · `Stopping` it ends · `Failed` an unclaimed one that died, until it is
 * cleared away · `Completed` finished, in lists alone.
 */
export interface Sandbox {
  /**
   * A UUID, version 7. The instance has it from its birth.
   */
  sandboxId: string;
  /**
   * The owner's.
   */
  namespace: string;
  poolName: string;
  /**
   * `sb-` and the id: the instance's name as a workload.
   */
  podName: string;
  status: 'Idle' | 'Starting' | 'Running' | 'Stopping' | 'Failed' | 'Completed';
  claimedAt?: string;
  /**
   * The owner's; of an unclaimed instance the pool's.
   */
  team: string;
  /**
   * The same.
   */
  user: string;
  /**
   * As its claim said, while it lives. Absent where that said nothing.
   */
  metadata?: {
    [k: string]: string;
  };
  /**
   * It is Running, and stands still. Absent where it goes on.
   */
  paused?: true;
}
export interface SandboxPage {
  items: SandboxRecord[];
  /**
   * How many there are in all, exactly.
   */
  total: number;
  /**
   * As asked.
   */
  limit: number;
  /**
   * As asked.
   */
  offset: number;
}
/**
 * A sandbox in a list, with its times and its end. End reasons: `deleted` by its owner or an
 * admin · `force-deleted` with its pool · `idle-timeout` · `max-lifetime` · `claim-failed` a
 * file of its claim could not be written · `exited` its main process ended, of several containers
 * the first one's · `oom-killed` that needed more memory than its limit, as far as the cluster
 * tells · `killed` the cluster ended it, such as by an eviction · `lost` it was found dead, its
 * exit code unknown · `start-failed`, `start-timeout`, `container-ended`, `retired`:
 * unclaimed ones.
 */
export interface SandboxRecord {
  /**
   * A UUID, version 7. The instance has it from its birth.
   */
  sandboxId: string;
  /**
   * The owner's.
   */
  namespace: string;
  poolName: string;
  /**
   * `sb-` and the id: the instance's name as a workload.
   */
  podName: string;
  status: 'Idle' | 'Starting' | 'Running' | 'Stopping' | 'Failed' | 'Completed';
  claimedAt?: string;
  /**
   * The owner's; of an unclaimed instance the pool's.
   */
  team: string;
  /**
   * The same.
   */
  user: string;
  /**
   * As its claim said, while it lives. Absent where that said nothing.
   */
  metadata?: {
    [k: string]: string;
  };
  /**
   * It is Running, and stands still. Absent where it goes on.
   */
  paused?: true;
  /**
   * When its main process started.
   */
  startedAt?: string;
  /**
   * When it ended.
   */
  terminatedAt?: string;
  /**
   * When what it held was given back and its record closed.
   */
  recycledAt?: string;
  /**
   * Whole seconds from its claim to its end, or to now.
   */
  durationSeconds?: number;
  /**
   * Its limit, as the template has it.
   */
  cpu: string;
  /**
   * Its limit, as the template has it.
   */
  memory: string;
  /**
   * Container to image.
   */
  containerImages: {
    [k: string]: string;
  };
  /**
   * Why it ended: see SandboxRecord.
   */
  endReason?: string;
}
export interface SandboxDetailEnvelope {
  sandbox: SandboxWithEndpoints;
}
export interface SandboxWithEndpoints {
  /**
   * A UUID, version 7. The instance has it from its birth.
   */
  sandboxId: string;
  /**
   * The owner's.
   */
  namespace: string;
  poolName: string;
  /**
   * `sb-` and the id: the instance's name as a workload.
   */
  podName: string;
  status: 'Idle' | 'Starting' | 'Running' | 'Stopping' | 'Failed' | 'Completed';
  claimedAt?: string;
  /**
   * The owner's; of an unclaimed instance the pool's.
   */
  team: string;
  /**
   * The same.
   */
  user: string;
  /**
   * As its claim said, while it lives. Absent where that said nothing.
   */
  metadata?: {
    [k: string]: string;
  };
  /**
   * It is Running, and stands still. Absent where it goes on.
   */
  paused?: true;
  /**
   * Endpoint name to URL, under this API; the key is needed there too. Empty where the template names none.
   */
  endpoints: {
    [k: string]: string;
  };
  /**
   * Containers beside the first that have ended by themselves, and how. The sandbox goes on without them.
   */
  endedContainers?: {
    [k: string]: string;
  };
  /**
   * While it runs. `0s` is never.
   */
  idleTimeout?: string;
  /**
   * When it ends if nothing happens, as far as this replica knows of use; use through another may have moved it. Absent where it never does.
   */
  idleExpiresAt?: string;
}
export interface SandboxDeletion {
  sandboxId: string;
  namespace: string;
  poolName: string;
  podName: string;
  status: 'Stopping';
}
export interface IsReadyAnswer {
  sandboxId: string;
  ready: boolean;
  endpoints: {
    [k: string]: {
      ready: boolean;
      message: string;
    };
  };
}
export interface ExecInSandboxBody {
  /**
   * A text is run by `/bin/sh -c`, an array as it stands, without a shell.
   */
  command: string | string[];
  /**
   * Then its whole process group is killed, and the answer is 200 with `timedOut`. 300 where it is left out.
   */
  timeoutSeconds?: number;
  /**
   * An absolute path; else the template's `workingDir`.
   */
  cwd?: string;
  /**
   * At most 128 variables, over those of the template. Names hold letters, digits and underscores.
   */
  env?: {
    [k: string]: string;
  };
  /**
   * Its standard input, then end of file. Left out: nothing.
   */
  stdin?: string;
  /**
   * The container's name; left out, the first one's. One that has ended is 409.
   */
  container?: string;
}
export interface ExecResult {
  /**
   * At most 1 MiB. Bytes that are not UTF-8 become U+FFFD.
   */
  stdout: string;
  /**
   * The same.
   */
  stderr: string;
  /**
   * The command's own, also when it is not 0. 128 + n after signal n, 127 not found, 126 not executable, 125 it could not be run at all, 124 timed out.
   */
  exitCode: number;
  timedOut: boolean;
  /**
   * Some output went beyond 1 MiB and was dropped.
   */
  truncated: boolean;
  durationMs: number;
}
export interface ExecToken {
  /**
   * A secret: whoever has it has a shell.
   */
  token: string;
}
export interface SetSandboxStateBody {
  /**
   * `paused`: all of it stands still, and keeps its memory. `running`: it goes on.
   */
  state: 'paused' | 'running';
}
export interface SetIdleTimeoutBody {
  /**
   * End it after so long without activity; `"0"`, `0` and null are never.
   */
  idleTimeout?: string | 0 | null;
  /**
   * The same in seconds; 0 and null are never.
   */
  idleTimeoutSeconds?: number | null;
}
export interface IdleTimeoutEnvelope {
  sandbox: SandboxWithIdleTimeout;
}
export interface SandboxWithIdleTimeout {
  /**
   * A UUID, version 7. The instance has it from its birth.
   */
  sandboxId: string;
  /**
   * The owner's.
   */
  namespace: string;
  poolName: string;
  /**
   * `sb-` and the id: the instance's name as a workload.
   */
  podName: string;
  status: 'Idle' | 'Starting' | 'Running' | 'Stopping' | 'Failed' | 'Completed';
  claimedAt?: string;
  /**
   * The owner's; of an unclaimed instance the pool's.
   */
  team: string;
  /**
   * The same.
   */
  user: string;
  /**
   * As its claim said, while it lives. Absent where that said nothing.
   */
  metadata?: {
    [k: string]: string;
  };
  /**
   * It is Running, and stands still. Absent where it goes on.
   */
  paused?: true;
  /**
   * `0s` is never.
   */
  idleTimeout: string;
  /**
   * When it ends if nothing happens. Absent where it never does.
   */
  idleExpiresAt?: string;
}
export interface SandboxLogs {
  sandboxId: string;
  podName: string;
  container: string;
  /**
   * Output and errors of the main process, in the order in which they were written. Bytes that are not UTF-8 show as U+FFFD. At most 1 MiB, the end of it.
   */
  logs: string;
  /**
   * Older lines were asked for than are here: more than `tailLines`, more than 1 MiB, or no longer kept.
   */
  truncated: boolean;
}
export interface StartProcessBody {
  /**
   * A text is run by `/bin/sh -c`, an array as it stands, without a shell.
   */
  command: string | string[];
  /**
   * An absolute path; else the template's `workingDir`.
   */
  cwd?: string;
  /**
   * At most 128 variables, over those of the template. Names hold letters, digits and underscores.
   */
  env?: {
    [k: string]: string;
  };
  /**
   * Run it on a terminal. It prints to `stdout` alone then.
   */
  tty?: boolean;
  /**
   * Columns of the terminal; 80 where it is left out.
   */
  cols?: number;
  /**
   * Rows of the terminal; 24 where it is left out.
   */
  rows?: number;
  /**
   * Keep its input open. Without it, it reads the end of file at once. A terminal’s is always open.
   */
  stdin?: boolean;
  /**
   * Kill its process group after so long; `exitCode` is 124 then. Left out: never.
   */
  timeoutSeconds?: number;
  /**
   * A word of the caller’s own, which is shown with it.
   */
  tag?: string;
  /**
   * The container's name; left out, the first one's.
   */
  container?: string;
}
export interface ProcessEnvelope {
  process: Process;
}
export interface Process {
  processId: string;
  /**
   * Its number within the sandbox.
   */
  pid: number;
  /**
   * The program and its arguments.
   */
  command: string[];
  status: 'Running' | 'Exited';
  /**
   * Of one that ended: its own, 128 + n after signal n, 127 not found, 126 not executable, 124 timed out.
   */
  exitCode?: number;
  /**
   * What its `exitCode` says that ended it, such as `KILL`.
   */
  signal?: string;
  startedAt: string;
  endedAt?: string;
  tag?: string;
  /**
   * It has a terminal.
   */
  tty: boolean;
  /**
   * It takes input.
   */
  stdin: boolean;
}
export interface ProcessList {
  items: Process[];
  total: number;
}
export interface ProcessDeletion {
  processId: string;
  status: 'deleted';
}
/**
 * `start` and `end`.
 */
export interface ProcessEnvelope1 {
  process: Process;
}
export interface WriteToProcessBody {
  /**
   * At most 64 KiB, as text or as `encoding` says.
   */
  data?: string;
  /**
   * Of `data`; `utf8` where it is left out.
   */
  encoding?: 'utf8' | 'base64';
  /**
   * Nothing comes behind it: the process reads the end.
   */
  close?: boolean;
}
export interface SignalProcessBody {
  /**
   * Sent to its process group, or to the foreground of its terminal.
   */
  signal: 'HUP' | 'INT' | 'QUIT' | 'KILL' | 'USR1' | 'USR2' | 'TERM' | 'CONT' | 'TSTP' | 'WINCH';
}
export interface ResizeProcessBody {
  /**
   * Columns of its terminal.
   */
  cols: number;
  /**
   * Rows of its terminal.
   */
  rows: number;
}
export interface WriteFileAnswer {
  file?: FileInfo;
  /**
   * What was unpacked, where the body was an archive.
   */
  archive?: {
    entries: number;
    /**
     * Of files.
     */
    bytes: number;
  };
}
/**
 * The file that was written.
 */
export interface FileInfo {
  /**
   * Absolute.
   */
  path: string;
  /**
   * The path is no UTF-8: it is given as base64 of its bytes.
   */
  base64?: true;
  kind: 'File' | 'Folder' | 'Link' | 'Other';
  size: number;
  /**
   * Permission bits in octal, such as `0644`.
   */
  mode: string;
  uid: number;
  gid: number;
  modifiedAt: string;
  /**
   * Of a file: what `GET` answers as its `ETag`.
   */
  etag?: string;
  /**
   * What a link says.
   */
  target?: string;
  /**
   * `target` is base64 of its bytes.
   */
  targetBase64?: true;
}
export interface RemoveFileAnswer {
  path: string;
  status: 'deleted';
}
export interface FileList {
  items: FileInfo1[];
  /**
   * Absent at the end.
   */
  nextCursor?: string;
}
export interface FileInfo1 {
  /**
   * Absolute.
   */
  path: string;
  /**
   * The path is no UTF-8: it is given as base64 of its bytes.
   */
  base64?: true;
  kind: 'File' | 'Folder' | 'Link' | 'Other';
  size: number;
  /**
   * Permission bits in octal, such as `0644`.
   */
  mode: string;
  uid: number;
  gid: number;
  modifiedAt: string;
  /**
   * Of a file: what `GET` answers as its `ETag`.
   */
  etag?: string;
  /**
   * What a link says.
   */
  target?: string;
  /**
   * `target` is base64 of its bytes.
   */
  targetBase64?: true;
}
export interface MoveFileBody {
  /**
   * Absolute, at most 4,095 bytes, without a part `..`.
   */
  from: string;
  /**
   * Likewise. The name itself, not a folder to move it into.
   */
  to: string;
  /**
   * Replace what is there. Absent: no.
   */
  overwrite?: boolean;
  /**
   * Paths are base64 of their bytes.
   */
  base64?: boolean;
  /**
   * Absent: the first container.
   */
  container?: string;
}
export interface MoveFileAnswer {
  file: FileInfo1;
}
export interface MakeFolderBody {
  /**
   * Absolute, at most 4,095 bytes, without a part `..`.
   */
  path: string;
  /**
   * Permission bits in octal. Absent: 0755.
   */
  mode?: string;
  /**
   * Make those above too, and take a folder that is there.
   */
  parents?: boolean;
  /**
   * Paths are base64 of their bytes.
   */
  base64?: boolean;
  /**
   * Absent: the first container.
   */
  container?: string;
}
export interface MakeFolderAnswer {
  file: FileInfo1;
}
export interface FileEvent {
  /**
   * `overflow`: some were missed, look anew. `gone`: the folder is no more.
   */
  type: 'created' | 'changed' | 'removed' | 'attributes' | 'overflow' | 'gone';
  /**
   * Below the folder; empty for itself.
   */
  path: string;
  /**
   * `path` is base64 of its bytes.
   */
  base64?: true;
  isFolder: boolean;
}
export interface EventList {
  /**
   * The last 50, the oldest first.
   */
  items: Event[];
  /**
   * How many these are.
   */
  total: number;
}
export interface Event {
  time: string;
  type: 'Normal' | 'Warning';
  /**
   * One word for programs: `Created`, `Started`, `Unhealthy`, `Ready`, `Claimed`, `IdleTimeoutChanged`, `Paused`, `Resumed`, `ContainerEnded`, `Killing`, `Failed`, `Completed`; of a pool `Created`, `Filled`, `Emptied`, `Resized`, `Changed`, `RolledOut`, `StartFailed`, `BackOff`, `Recovered`, `Deleting`, `Deleted`; of requests that wait for a person `approval.requested`, `approval.decided`, `approval.consumed`. There may be more some day.
   */
  reason: string;
  /**
   * For people.
   */
  message: string;
  /**
   * Left out where it happened to a pool.
   */
  sandboxId?: string;
  /**
   * Left out where it happened to an approval.
   */
  poolName?: string;
  /**
   * Where it happened to an approval.
   */
  approvalId?: string;
  namespace: string;
  team: string;
  user: string;
  /**
   * With `Killing`, `Failed` and `Completed`: as in the list of sandboxes.
   */
  endReason?: string;
  /**
   * With `Completed`, of the main process, where it ended by itself and the code is known.
   */
  exitCode?: number;
}
export interface CreatePoolBody {
  /**
   * A DNS label.
   */
  name: string;
  /**
   * One of the templates; required where there is neither `template` nor `overrides.image`.
   */
  templateName?: string;
  /**
   * The `spec` of a template, instead of one by name, at most 256 KiB. Unknown fields are refused.
   */
  template?: {
    description?: string;
    docs?: string;
    poolSizing?: 'billed' | 'free';
    defaults?: {
      instanceType?: string;
      multiplier?: number;
    };
    /**
     * @minItems 1
     * @maxItems 8
     */
    containers: {
      name: string;
      image: string;
      /**
       * @minItems 1
       * @maxItems 64
       */
      command?: string[];
      /**
       * @maxItems 256
       */
      args?: string[];
      /**
       * @maxItems 128
       */
      env?: {
        name: string;
        value: string;
      }[];
      workingDir?: string;
      resources?: {
        requests?: {
          cpu?: string;
          memory?: string;
        };
        limits?: {
          cpu?: string;
          memory?: string;
        };
      };
      /**
       * @maxItems 16
       */
      ports?: {
        name: string;
        containerPort: number;
      }[];
      readinessProbe?: {
        exec?: {
          /**
           * @minItems 1
           * @maxItems 64
           */
          command: string[];
        };
        /**
         * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
         */
        httpGet?: {
          path?: string;
          port?: number | string;
          scheme?: 'HTTP' | 'HTTPS';
          /**
           * @maxItems 16
           */
          httpHeaders?: {
            name: string;
            value: string;
          }[];
        };
        /**
         * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
         */
        tcpSocket?: {
          port?: number | string;
        };
        initialDelaySeconds?: number;
        periodSeconds?: number;
        /**
         * On one machine a run is given up after 30 s, whatever is set here: it holds a place that other probes wait for.
         */
        timeoutSeconds?: number;
        successThreshold?: number;
        failureThreshold?: number;
      };
      extendedResources?: {
        [k: string]: number;
      };
      ephemeralStorage?: string;
    }[];
    startupTimeout?: string;
    idleTimeout?: string;
    maxLifetime?: string;
    network?: 'none' | 'host';
    /**
     * @maxItems 16
     */
    endpoints?: {
      name: string;
      port: number | string;
      scheme?: 'http' | 'https';
      readinessProbe?: {
        exec?: {
          /**
           * @minItems 1
           * @maxItems 64
           */
          command: string[];
        };
        /**
         * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
         */
        httpGet?: {
          path?: string;
          port?: number | string;
          scheme?: 'HTTP' | 'HTTPS';
          /**
           * @maxItems 16
           */
          httpHeaders?: {
            name: string;
            value: string;
          }[];
        };
        /**
         * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
         */
        tcpSocket?: {
          port?: number | string;
        };
        initialDelaySeconds?: number;
        periodSeconds?: number;
        /**
         * On one machine a run is given up after 30 s, whatever is set here: it holds a place that other probes wait for.
         */
        timeoutSeconds?: number;
        successThreshold?: number;
        failureThreshold?: number;
      };
    }[];
    runtimeClassName?: string;
    nodeSelector?: {
      [k: string]: string;
    };
    /**
     * @maxItems 32
     */
    tolerations?: {
      key?: string;
      operator?: 'Equal' | 'Exists';
      value?: string;
      effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
      tolerationSeconds?: number;
    }[];
    affinity?: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution?: {
          /**
           * @minItems 1
           * @maxItems 16
           */
          nodeSelectorTerms: {
            /**
             * @minItems 1
             * @maxItems 16
             */
            matchExpressions: {
              key: string;
              operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
              /**
               * @maxItems 64
               */
              values?: string[];
            }[];
          }[];
        };
        /**
         * @maxItems 16
         */
        preferredDuringSchedulingIgnoredDuringExecution?: {
          weight: number;
          preference: {
            /**
             * @minItems 1
             * @maxItems 16
             */
            matchExpressions: {
              key: string;
              operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
              /**
               * @maxItems 64
               */
              values?: string[];
            }[];
          };
        }[];
      };
    };
    priorityClassName?: string;
    hostUsers?: false;
  };
  /**
   * One of `GET /instancetypes`: the size of the first container.
   */
  instanceType?: string;
  /**
   * Of the instance type; at most its `maxMultiplier`.
   */
  multiplier?: number;
  /**
   * Of the first container; counts before all else that says it.
   */
  cpu?: string;
  /**
   * Of the first container; counts before all else that says it.
   */
  memory?: string;
  /**
   * Of the first container; counts before the instance type. A request alone leaves the limit as it is, or raises it to itself.
   */
  inlineResources?: {
    requests?: {
      cpu?: string;
      memory?: string;
    };
    limits?: {
      cpu?: string;
      memory?: string;
    };
  };
  /**
   * What differs from the template.
   */
  overrides?: {
    /**
     * Instead of the template's, of the first container.
     */
    image?: string;
    /**
     * `PoolDefaultImage`: new instances take the template's image, whatever `image` says.
     */
    podCreationImagePolicy?: 'PoolDefaultImage' | 'EnvOverrideImage';
    defaultStartupTimeout?: string;
    /**
     * Of sandboxes whose claim names none.
     */
    defaultIdleTimeout?: string;
    /**
     * Answered; not heeded in requests.
     */
    imagePullSecretConfigured?: boolean;
    /**
     * `enabled: false`: endpoints are not published.
     */
    gateway?: {
      enabled?: boolean;
    };
    /**
     * `verbose: true`: what Sandpool runs inside says more.
     */
    envd?: {
      verbose?: boolean;
    };
    /**
     * Mounted into every container.
     *
     * @maxItems 16
     */
    volumes?: {
      /**
       * One of `GET /volumes`.
       */
      claimName: string;
      /**
       * Where it stands inside.
       */
      mountPath: string;
      /**
       * A folder of it instead of the whole: a relative path without `..`. A missing one is made.
       */
      subPath?: string;
      readOnly?: boolean;
    }[];
    /**
     * Write-only; replaces what was given before.
     */
    imagePullSecret?: {
      /**
       * @maxItems 16
       */
      registries: {
        registry: string;
        username: string;
        password: string;
      }[];
    };
  };
  /**
   * `team`: every user of the owner's team sees it and claims from it, under their own key and quota; only the owner and admins change it. `user`: it is the owner's alone. The default is `user`.
   */
  access?: 'user' | 'team';
  /**
   * See what replicas counts. Of a new pool 1, or what the bounds have nearest to it.
   */
  replicas?: number;
  /**
   * Bounds of `replicas`.
   */
  minReplicas?: number;
  /**
   * Bounds of `replicas`.
   */
  maxReplicas?: number;
  updateStrategy?: {
    /**
     * Whether changes reach idle instances by themselves; else they wait for sync-template.
     */
    autoUpdate?: boolean;
    /**
     * How many of the unclaimed instances that there should be a rollout may leave away, starting or unavailable at a time; at least 1.
     */
    maxUnavailable?: string;
  };
  /**
   * At most 64. Data, never interpreted. {} where it is left out.
   */
  labels?: {
    [k: string]: string;
  };
  /**
   * At most 64. Data, never interpreted. {} where it is left out.
   */
  annotations?: {
    [k: string]: string;
  };
}
export interface PoolEnvelope {
  template: Pool;
}
/**
 * The counts are exact. Phase: `Pending` not yet full since the daemon started · `Ready` all
 * there · `Scaling` instances start or go · `Degraded` some are unavailable, starts keep
 * failing while something is usable, or can not go on as things are · `Failed` starts keep
 * failing and nothing is usable · `Updating` unclaimed instances of older revisions are replaced,
 * within `maxUnavailable` · `Deleting`.
 */
export interface Pool {
  name: string;
  namespace: string;
  /**
   * Of each instance.
   */
  cpu: string;
  /**
   * Of each instance.
   */
  memory: string;
  /**
   * The owner's.
   */
  team: string;
  /**
   * The owner's.
   */
  user: string;
  /**
   * Of the template that new instances are started from; where that is inline, `status.updateRevision`.
   */
  templateVersion?: string;
  createdAt: string;
  labels: {
    [k: string]: string;
  };
  /**
   * `sandpool.dev/template-name` is the template's name.
   */
  annotations: {
    [k: string]: string;
  };
  /**
   * What its owner asked for, as it was asked.
   */
  spec: {
    /**
     * How many there should be.
     */
    replicas: number;
    minReplicas?: number;
    maxReplicas?: number;
    /**
     * Left out where it is `user`.
     */
    access?: 'user' | 'team';
    /**
     * Left out where it is the default: `autoUpdate`, and 25%.
     */
    updateStrategy?: {
      /**
       * Whether changes reach idle instances by themselves; else they wait for sync-template.
       */
      autoUpdate: boolean;
      /**
       * How many of the unclaimed instances that there should be a rollout may leave away, starting or unavailable at a time; at least 1.
       */
      maxUnavailable: string;
    };
    /**
     * The version of it that a member of a pinned env is started from.
     */
    templateVersion?: string;
    /**
     * The `spec` of a template, instead of one by name, at most 256 KiB. Unknown fields are refused.
     */
    template?: {
      description?: string;
      docs?: string;
      poolSizing?: 'billed' | 'free';
      defaults?: {
        instanceType?: string;
        multiplier?: number;
      };
      /**
       * @minItems 1
       * @maxItems 8
       */
      containers: {
        name: string;
        image: string;
        /**
         * @minItems 1
         * @maxItems 64
         */
        command?: string[];
        /**
         * @maxItems 256
         */
        args?: string[];
        /**
         * @maxItems 128
         */
        env?: {
          name: string;
          value: string;
        }[];
        workingDir?: string;
        resources?: {
          requests?: {
            cpu?: string;
            memory?: string;
          };
          limits?: {
            cpu?: string;
            memory?: string;
          };
        };
        /**
         * @maxItems 16
         */
        ports?: {
          name: string;
          containerPort: number;
        }[];
        readinessProbe?: {
          exec?: {
            /**
             * @minItems 1
             * @maxItems 64
             */
            command: string[];
          };
          /**
           * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
           */
          httpGet?: {
            path?: string;
            port?: number | string;
            scheme?: 'HTTP' | 'HTTPS';
            /**
             * @maxItems 16
             */
            httpHeaders?: {
              name: string;
              value: string;
            }[];
          };
          /**
           * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
           */
          tcpSocket?: {
            port?: number | string;
          };
          initialDelaySeconds?: number;
          periodSeconds?: number;
          /**
           * On one machine a run is given up after 30 s, whatever is set here: it holds a place that other probes wait for.
           */
          timeoutSeconds?: number;
          successThreshold?: number;
          failureThreshold?: number;
        };
        extendedResources?: {
          [k: string]: number;
        };
        ephemeralStorage?: string;
      }[];
      startupTimeout?: string;
      idleTimeout?: string;
      maxLifetime?: string;
      network?: 'none' | 'host';
      /**
       * @maxItems 16
       */
      endpoints?: {
        name: string;
        port: number | string;
        scheme?: 'http' | 'https';
        readinessProbe?: {
          exec?: {
            /**
             * @minItems 1
             * @maxItems 64
             */
            command: string[];
          };
          /**
           * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
           */
          httpGet?: {
            path?: string;
            port?: number | string;
            scheme?: 'HTTP' | 'HTTPS';
            /**
             * @maxItems 16
             */
            httpHeaders?: {
              name: string;
              value: string;
            }[];
          };
          /**
           * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
           */
          tcpSocket?: {
            port?: number | string;
          };
          initialDelaySeconds?: number;
          periodSeconds?: number;
          /**
           * On one machine a run is given up after 30 s, whatever is set here: it holds a place that other probes wait for.
           */
          timeoutSeconds?: number;
          successThreshold?: number;
          failureThreshold?: number;
        };
      }[];
      runtimeClassName?: string;
      nodeSelector?: {
        [k: string]: string;
      };
      /**
       * @maxItems 32
       */
      tolerations?: {
        key?: string;
        operator?: 'Equal' | 'Exists';
        value?: string;
        effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
        tolerationSeconds?: number;
      }[];
      affinity?: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution?: {
            /**
             * @minItems 1
             * @maxItems 16
             */
            nodeSelectorTerms: {
              /**
               * @minItems 1
               * @maxItems 16
               */
              matchExpressions: {
                key: string;
                operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
                /**
                 * @maxItems 64
                 */
                values?: string[];
              }[];
            }[];
          };
          /**
           * @maxItems 16
           */
          preferredDuringSchedulingIgnoredDuringExecution?: {
            weight: number;
            preference: {
              /**
               * @minItems 1
               * @maxItems 16
               */
              matchExpressions: {
                key: string;
                operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
                /**
                 * @maxItems 64
                 */
                values?: string[];
              }[];
            };
          }[];
        };
      };
      priorityClassName?: string;
      hostUsers?: false;
    };
    /**
     * One of `GET /instancetypes`: the size of the first container.
     */
    instanceType?: string;
    /**
     * Of the instance type; at most its `maxMultiplier`.
     */
    multiplier?: number;
    /**
     * Of the first container; counts before all else that says it.
     */
    cpu?: string;
    /**
     * Of the first container; counts before all else that says it.
     */
    memory?: string;
    /**
     * Of the first container; counts before the instance type. A request alone leaves the limit as it is, or raises it to itself.
     */
    inlineResources?: {
      requests?: {
        cpu?: string;
        memory?: string;
      };
      limits?: {
        cpu?: string;
        memory?: string;
      };
    };
    /**
     * What differs from the template.
     */
    overrides?: {
      /**
       * Instead of the template's, of the first container.
       */
      image?: string;
      /**
       * `PoolDefaultImage`: new instances take the template's image, whatever `image` says.
       */
      podCreationImagePolicy?: 'PoolDefaultImage' | 'EnvOverrideImage';
      defaultStartupTimeout?: string;
      /**
       * Of sandboxes whose claim names none.
       */
      defaultIdleTimeout?: string;
      /**
       * Answered; not heeded in requests.
       */
      imagePullSecretConfigured?: boolean;
      /**
       * `enabled: false`: endpoints are not published.
       */
      gateway?: {
        enabled?: boolean;
      };
      /**
       * `verbose: true`: what Sandpool runs inside says more.
       */
      envd?: {
        verbose?: boolean;
      };
      /**
       * Mounted into every container.
       *
       * @maxItems 16
       */
      volumes?: {
        /**
         * One of `GET /volumes`.
         */
        claimName: string;
        /**
         * Where it stands inside.
         */
        mountPath: string;
        /**
         * A folder of it instead of the whole: a relative path without `..`. A missing one is made.
         */
        subPath?: string;
        readOnly?: boolean;
      }[];
    };
  };
  status: {
    phase: 'Pending' | 'Ready' | 'Scaling' | 'Updating' | 'Degraded' | 'Deleting' | 'Failed';
    /**
     * Ready to claim.
     */
    idleReplicas: number;
    /**
     * Were ready, and are not now.
     */
    unavailableIdleReplicas: number;
    /**
     * Claimed.
     */
    runningReplicas: number;
    startingReplicas: number;
    stoppingReplicas: number;
    /**
     * Unclaimed ones that died, until they are cleared away.
     */
    failedReplicas: number;
    /**
     * Of what new instances are started from: instances of one revision are alike.
     */
    updateRevision: string;
    /**
     * Those of that revision: starting, idle, unavailable or running.
     */
    updatedReplicas: number;
    /**
     * Unclaimed ones of older revisions, which a rollout replaces.
     */
    outdatedReplicas: number;
    /**
     * Of the template that the pool was made of last, or could not be made of: then `TemplateResolved` says why. Left out where that is inline.
     */
    observedTemplateVersion?: string;
    /**
     * What new instances are started from: the fields of the template as the pool took them over, with its size and overrides. Left out in lists.
     */
    template?: {
      containers: {
        name: string;
        image: string;
        /**
         * With its arguments.
         */
        command: string[];
        workingDir: string;
        /**
         * By name alone: their values may be secrets.
         */
        env: {
          name: string;
        }[];
        resources: {
          limits: {
            cpu: string;
            memory: string;
          };
          requests?: {
            cpu: string;
            memory: string;
          };
        };
      }[];
      network: 'none' | 'host';
      endpoints?: {
        name: string;
        port: number;
        scheme: 'http' | 'https';
      }[];
      startupTimeout: string;
      idleTimeout: string;
      maxLifetime: string;
    };
    conditions: PoolCondition[];
  };
}
/**
 * `Progressing` while unclaimed instances of older revisions are replaced; its reason is `RolloutBlocked` while the new revision fails to start. `Degraded` while starts fail or instances are unavailable, and where instances can not start as things are: `Unschedulable`, `ImageUnavailable`, `ContainerNotCreated`, with the scheduler's or kubelet's words. `TemplateResolved` is false while a change of the template, or of what the pool names, can not be taken: the pool stays on what it has.
 */
export interface PoolCondition {
  type: 'Progressing' | 'Degraded' | 'TemplateResolved';
  status: 'True' | 'False';
  /**
   * A word in CamelCase.
   */
  reason: string;
  /**
   * Empty where there is nothing to say.
   */
  message: string;
  /**
   * When the status last changed.
   */
  lastTransitionTime: string;
}
export interface PoolPage {
  items: Pool[];
  /**
   * How many there are in all, exactly.
   */
  total: number;
  /**
   * As asked.
   */
  limit: number;
  /**
   * As asked.
   */
  offset: number;
}
export interface UpdatePoolBody {
  /**
   * One of the templates; required where there is neither `template` nor `overrides.image`.
   */
  templateName?: string;
  /**
   * The `spec` of a template, instead of one by name, at most 256 KiB. Unknown fields are refused.
   */
  template?: {
    description?: string;
    docs?: string;
    poolSizing?: 'billed' | 'free';
    defaults?: {
      instanceType?: string;
      multiplier?: number;
    };
    /**
     * @minItems 1
     * @maxItems 8
     */
    containers: {
      name: string;
      image: string;
      /**
       * @minItems 1
       * @maxItems 64
       */
      command?: string[];
      /**
       * @maxItems 256
       */
      args?: string[];
      /**
       * @maxItems 128
       */
      env?: {
        name: string;
        value: string;
      }[];
      workingDir?: string;
      resources?: {
        requests?: {
          cpu?: string;
          memory?: string;
        };
        limits?: {
          cpu?: string;
          memory?: string;
        };
      };
      /**
       * @maxItems 16
       */
      ports?: {
        name: string;
        containerPort: number;
      }[];
      readinessProbe?: {
        exec?: {
          /**
           * @minItems 1
           * @maxItems 64
           */
          command: string[];
        };
        /**
         * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
         */
        httpGet?: {
          path?: string;
          port?: number | string;
          scheme?: 'HTTP' | 'HTTPS';
          /**
           * @maxItems 16
           */
          httpHeaders?: {
            name: string;
            value: string;
          }[];
        };
        /**
         * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
         */
        tcpSocket?: {
          port?: number | string;
        };
        initialDelaySeconds?: number;
        periodSeconds?: number;
        /**
         * On one machine a run is given up after 30 s, whatever is set here: it holds a place that other probes wait for.
         */
        timeoutSeconds?: number;
        successThreshold?: number;
        failureThreshold?: number;
      };
      extendedResources?: {
        [k: string]: number;
      };
      ephemeralStorage?: string;
    }[];
    startupTimeout?: string;
    idleTimeout?: string;
    maxLifetime?: string;
    network?: 'none' | 'host';
    /**
     * @maxItems 16
     */
    endpoints?: {
      name: string;
      port: number | string;
      scheme?: 'http' | 'https';
      readinessProbe?: {
        exec?: {
          /**
           * @minItems 1
           * @maxItems 64
           */
          command: string[];
        };
        /**
         * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
         */
        httpGet?: {
          path?: string;
          port?: number | string;
          scheme?: 'HTTP' | 'HTTPS';
          /**
           * @maxItems 16
           */
          httpHeaders?: {
            name: string;
            value: string;
          }[];
        };
        /**
         * Asks the sandbox's loopback on one machine. On Kubernetes it is the kubelet that asks, the Pod's own address: a server that listens on 127.0.0.1 alone is never ready there; it has to listen on all addresses, or the probe to be an `exec`.
         */
        tcpSocket?: {
          port?: number | string;
        };
        initialDelaySeconds?: number;
        periodSeconds?: number;
        /**
         * On one machine a run is given up after 30 s, whatever is set here: it holds a place that other probes wait for.
         */
        timeoutSeconds?: number;
        successThreshold?: number;
        failureThreshold?: number;
      };
    }[];
    runtimeClassName?: string;
    nodeSelector?: {
      [k: string]: string;
    };
    /**
     * @maxItems 32
     */
    tolerations?: {
      key?: string;
      operator?: 'Equal' | 'Exists';
      value?: string;
      effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
      tolerationSeconds?: number;
    }[];
    affinity?: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution?: {
          /**
           * @minItems 1
           * @maxItems 16
           */
          nodeSelectorTerms: {
            /**
             * @minItems 1
             * @maxItems 16
             */
            matchExpressions: {
              key: string;
              operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
              /**
               * @maxItems 64
               */
              values?: string[];
            }[];
          }[];
        };
        /**
         * @maxItems 16
         */
        preferredDuringSchedulingIgnoredDuringExecution?: {
          weight: number;
          preference: {
            /**
             * @minItems 1
             * @maxItems 16
             */
            matchExpressions: {
              key: string;
              operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
              /**
               * @maxItems 64
               */
              values?: string[];
            }[];
          };
        }[];
      };
    };
    priorityClassName?: string;
    hostUsers?: false;
  };
  /**
   * One of `GET /instancetypes`: the size of the first container.
   */
  instanceType?: string | null;
  /**
   * Of the instance type; at most its `maxMultiplier`.
   */
  multiplier?: number | null;
  /**
   * Of the first container; counts before all else that says it.
   */
  cpu?: string | null;
  /**
   * Of the first container; counts before all else that says it.
   */
  memory?: string | null;
  /**
   * Of the first container; counts before the instance type. A request alone leaves the limit as it is, or raises it to itself.
   */
  inlineResources?: {
    requests?: {
      cpu?: string;
      memory?: string;
    };
    limits?: {
      cpu?: string;
      memory?: string;
    };
  } | null;
  /**
   * What differs from the template.
   */
  overrides?: {
    /**
     * Instead of the template's, of the first container.
     */
    image?: string | null;
    /**
     * `PoolDefaultImage`: new instances take the template's image, whatever `image` says.
     */
    podCreationImagePolicy?: ('PoolDefaultImage' | 'EnvOverrideImage') | null;
    defaultStartupTimeout?: string | null;
    /**
     * Of sandboxes whose claim names none.
     */
    defaultIdleTimeout?: string | null;
    /**
     * Answered; not heeded in requests.
     */
    imagePullSecretConfigured?: boolean;
    /**
     * `enabled: false`: endpoints are not published.
     */
    gateway?: {
      enabled?: boolean;
    } | null;
    /**
     * `verbose: true`: what Sandpool runs inside says more.
     */
    envd?: {
      verbose?: boolean;
    } | null;
    /**
     * Mounted into every container.
     */
    volumes?:
      | {
          /**
           * One of `GET /volumes`.
           */
          claimName: string;
          /**
           * Where it stands inside.
           */
          mountPath: string;
          /**
           * A folder of it instead of the whole: a relative path without `..`. A missing one is made.
           */
          subPath?: string;
          readOnly?: boolean;
        }[]
      | null;
    /**
     * Write-only; replaces what was given before, and null removes it.
     */
    imagePullSecret?: {
      /**
       * @maxItems 16
       */
      registries: {
        registry: string;
        username: string;
        password: string;
      }[];
    } | null;
  } | null;
  access?: ('user' | 'team') | null;
  /**
   * See what replicas counts. Of a new pool 1, or what the bounds have nearest to it.
   */
  replicas?: number;
  /**
   * Bounds of `replicas`.
   */
  minReplicas?: number | null;
  /**
   * Bounds of `replicas`.
   */
  maxReplicas?: number | null;
  updateStrategy?: {
    autoUpdate?: boolean | null;
    maxUnavailable?: string | null;
  } | null;
  /**
   * Instead of those there are. At most 64. Data, never interpreted.
   */
  labels?: {
    [k: string]: string;
  } | null;
  /**
   * Instead of those there are. At most 64. Data, never interpreted.
   */
  annotations?: {
    [k: string]: string;
  } | null;
}
export interface PoolDeletion {
  name: string;
  namespace: string;
  status: 'Deleting';
}
export interface PoolSyncPreview {
  /**
   * What instances would be started from.
   */
  specYaml: string;
  /**
   * The template's; of an inline template a hash of what would be applied.
   */
  version: string;
}
export interface CreateEnvBody {
  /**
   * A DNS label.
   */
  name: string;
  /**
   * "WarmPool" where it is left out.
   */
  mode?: 'WarmPool';
  /**
   * `team`: every user of the owner's team sees it and claims from it, under their own key and quota; only the owner and admins change it. `user`: it is the owner's alone. The default is `user`.
   */
  access?: 'user' | 'team';
  templateRef: {
    /**
     * One of the templates.
     */
    name: string;
    /**
     * Pins the env to this version; left out it follows the template.
     */
    version?: string;
  };
  /**
   * What differs from the template. {} where it is left out.
   */
  overrides?: {
    /**
     * Instead of the template's, of the first container.
     */
    image?: string;
    /**
     * `PoolDefaultImage`: new instances take the template's image, whatever `image` says.
     */
    podCreationImagePolicy?: 'PoolDefaultImage' | 'EnvOverrideImage';
    defaultStartupTimeout?: string;
    /**
     * Of sandboxes whose claim names none.
     */
    defaultIdleTimeout?: string;
    /**
     * Answered; not heeded in requests.
     */
    imagePullSecretConfigured?: boolean;
    /**
     * `enabled: false`: endpoints are not published.
     */
    gateway?: {
      enabled?: boolean;
    };
    /**
     * `verbose: true`: what Sandpool runs inside says more.
     */
    envd?: {
      verbose?: boolean;
    };
    /**
     * Mounted into every container.
     *
     * @maxItems 16
     */
    volumes?: {
      /**
       * One of `GET /volumes`.
       */
      claimName: string;
      /**
       * Where it stands inside.
       */
      mountPath: string;
      /**
       * A folder of it instead of the whole: a relative path without `..`. A missing one is made.
       */
      subPath?: string;
      readOnly?: boolean;
    }[];
    /**
     * Of the members that say nothing of it themselves.
     */
    updateStrategy?: {
      /**
       * Whether changes reach idle instances by themselves; else they wait for sync-template.
       */
      autoUpdate?: boolean;
      /**
       * How many of the unclaimed instances that there should be a rollout may leave away, starting or unavailable at a time; at least 1.
       */
      maxUnavailable?: string;
    };
    /**
     * Write-only; replaces what was given before.
     */
    imagePullSecret?: {
      /**
       * @maxItems 16
       */
      registries: {
        registry: string;
        username: string;
        password: string;
      }[];
    };
  };
  /**
   * At most 64. Data, never interpreted. {} where it is left out.
   */
  labels?: {
    [k: string]: string;
  };
  /**
   * At most 64. Data, never interpreted. {} where it is left out.
   */
  annotations?: {
    [k: string]: string;
  };
  /**
   * For people, at length; as Markdown, if they like.
   */
  envDocs?: string;
}
export interface EnvEnvelope {
  env: Env;
  editable: EnvEditable;
}
/**
 * Counted when it is read.
 */
export interface Env {
  name: string;
  namespace: string;
  labels: {
    [k: string]: string;
  };
  team: string;
  user: string;
  createdAt: string;
  envDocs?: string;
  /**
   * The template's.
   */
  poolSizing?: 'billed' | 'free';
  spec: {
    /**
     * Left out where it is `user`.
     */
    access?: 'user' | 'team';
    templateRef: {
      /**
       * One of the templates.
       */
      name: string;
      /**
       * Pins the env to this version; left out it follows the template.
       */
      version?: string;
    };
    mode: 'WarmPool';
    /**
     * The template's: the size of members that name none.
     */
    defaults: {
      instanceType?: string;
      multiplier?: number;
    };
    clusters: {
      clusterID: string;
      members: {
        name: string;
        config: {
          /**
           * At most 64. Data, never interpreted.
           */
          labels?: {
            [k: string]: string;
          };
          /**
           * At most 64. Data, never interpreted.
           */
          annotations?: {
            [k: string]: string;
          };
          /**
           * One of `GET /instancetypes`: the size of the first container.
           */
          instanceType?: string;
          /**
           * Of the instance type; at most its `maxMultiplier`.
           */
          multiplier?: number;
          /**
           * Of the first container; counts before the instance type. A request alone leaves the limit as it is, or raises it to itself.
           */
          inlineResources?: {
            requests?: {
              cpu?: string;
              memory?: string;
            };
            limits?: {
              cpu?: string;
              memory?: string;
            };
          };
          /**
           * The autoscaling group that sizes it; of a new member a group of its own name where it is left out.
           */
          scalingGroup?: string;
          /**
           * The member's own bounds, beside those of its group.
           */
          minReplicas?: number;
          /**
           * The member's own bounds, beside those of its group.
           */
          maxReplicas?: number;
          /**
           * Of the members of a group the higher one grows first and shrinks last; 0 where unset.
           */
          priority?: number;
          /**
           * The higher one grows first; `priority` where unset.
           */
          scaleUpPriority?: number;
          /**
           * The higher one shrinks first; minus `priority` where unset.
           */
          scaleDownPriority?: number;
          /**
           * Counts before that of the env's overrides.
           */
          updateStrategy?: {
            /**
             * Whether changes reach idle instances by themselves; else they wait for sync-template.
             */
            autoUpdate?: boolean;
            /**
             * How many of the unclaimed instances that there should be a rollout may leave away, starting or unavailable at a time; at least 1.
             */
            maxUnavailable?: string;
          };
        };
      }[];
    }[];
    autoscaling: {
      groups: AutoscalingGroup[];
    };
    overrides: {
      /**
       * Instead of the template's, of the first container.
       */
      image?: string;
      /**
       * `PoolDefaultImage`: new instances take the template's image, whatever `image` says.
       */
      podCreationImagePolicy?: 'PoolDefaultImage' | 'EnvOverrideImage';
      defaultStartupTimeout?: string;
      /**
       * Of sandboxes whose claim names none.
       */
      defaultIdleTimeout?: string;
      /**
       * Answered; not heeded in requests.
       */
      imagePullSecretConfigured?: boolean;
      /**
       * `enabled: false`: endpoints are not published.
       */
      gateway?: {
        enabled?: boolean;
      };
      /**
       * `verbose: true`: what Sandpool runs inside says more.
       */
      envd?: {
        verbose?: boolean;
      };
      /**
       * Mounted into every container.
       *
       * @maxItems 16
       */
      volumes?: {
        /**
         * One of `GET /volumes`.
         */
        claimName: string;
        /**
         * Where it stands inside.
         */
        mountPath: string;
        /**
         * A folder of it instead of the whole: a relative path without `..`. A missing one is made.
         */
        subPath?: string;
        readOnly?: boolean;
      }[];
      /**
       * Of the members that say nothing of it themselves.
       */
      updateStrategy?: {
        /**
         * Whether changes reach idle instances by themselves; else they wait for sync-template.
         */
        autoUpdate?: boolean;
        /**
         * How many of the unclaimed instances that there should be a rollout may leave away, starting or unavailable at a time; at least 1.
         */
        maxUnavailable?: string;
      };
    };
  };
  status: {
    conditions: EnvCondition[];
    clusters: {
      clusterID: string;
      isLocal: boolean;
      /**
       * When it was so.
       */
      lastSnapshotTime: string;
      observedMembers: ObservedMember[];
    }[];
    scalingGroups: {
      name: string;
      totalIdle: number;
      totalRunning: number;
      totalDesired: number;
    }[];
    memberCount: number;
    desiredReplicas: number;
    runningReplicas: number;
    idleReplicas: number;
  };
}
export interface AutoscalingGroup {
  name: string;
  /**
   * Off: its members keep their size, and their pools' `replicas` are yours.
   */
  enabled: boolean;
  /**
   * Over all its members together.
   */
  minReplicas: number;
  /**
   * Over all its members together.
   */
  maxReplicas: number;
  scaleUpPolicy: {
    /**
     * How eagerly it grows.
     */
    mode: 'Conservative' | 'Moderate' | 'Aggressive';
    /**
     * Least time between two scale-ups; what `minReplicas` is short of, and an instance for each claim that waits, is made at once.
     */
    cooldownSeconds: number;
    /**
     * How long too few must have been idle.
     */
    idleThresholdSeconds: number;
    /**
     * With nothing idle it grows where a claim came in this time; 0: always.
     */
    idleZeroQuietWindowSeconds: number;
    /**
     * For how long a member that could not grow is left out.
     */
    saturationCooldownSeconds: number;
  };
  scaleDownPolicy: {
    /**
     * What stayed idle for so long is surplus; 0: it never scales down.
     */
    idleTimeoutSeconds: number;
    /**
     * It goes down to the highest size that it wanted in this time.
     */
    stabilizationSeconds: number;
    /**
     * No scale-down so soon after a scale-up, and no instance younger than this goes.
     */
    protectionWindowSeconds: number;
  };
}
export interface EnvCondition {
  type: 'Ready' | 'TemplateResolved' | 'MembersSynced' | 'QuotaOk' | 'Progressing' | 'ScalingLimited';
  status: 'True' | 'False';
  /**
   * A word in CamelCase.
   */
  reason: string;
  message: string;
  /**
   * When the status last changed.
   */
  lastTransitionTime: string;
}
export interface ObservedMember {
  name: string;
  instanceType?: string;
  multiplier?: number;
  state: 'Pending' | 'Active' | 'Saturated' | 'Draining' | 'Unreachable' | 'Error';
  idleCount: number;
  runningCount: number;
  desiredReplicas: number;
  /**
   * Starting, idle, unavailable and running.
   */
  currentReplicas: number;
  scalingGroup?: string;
  autoscalingEnabled: boolean;
  templateVersion?: string;
  /**
   * Claims that wait, and users refused for want of an idle instance and not served since.
   */
  pendingRequests: number;
  /**
   * It can't grow until then.
   */
  saturatedUntil?: string;
  /**
   * By how much it may grow.
   */
  scaleUpHeadroom: number;
  updateRevision?: string;
  updatedReplicas: number;
}
/**
 * What PUT takes: to be changed and given back.
 */
export interface EnvEditable {
  name: string;
  /**
   * `team`: every user of the owner's team sees it and claims from it, under their own key and quota; only the owner and admins change it. `user`: it is the owner's alone. The default is `user`.
   */
  access?: 'user' | 'team';
  templateRef: {
    /**
     * One of the templates.
     */
    name: string;
    /**
     * Pins the env to this version; left out it follows the template.
     */
    version?: string;
  };
  mode: 'WarmPool';
  overrides: {
    /**
     * Instead of the template's, of the first container.
     */
    image?: string;
    /**
     * `PoolDefaultImage`: new instances take the template's image, whatever `image` says.
     */
    podCreationImagePolicy?: 'PoolDefaultImage' | 'EnvOverrideImage';
    defaultStartupTimeout?: string;
    /**
     * Of sandboxes whose claim names none.
     */
    defaultIdleTimeout?: string;
    /**
     * Answered; not heeded in requests.
     */
    imagePullSecretConfigured?: boolean;
    /**
     * `enabled: false`: endpoints are not published.
     */
    gateway?: {
      enabled?: boolean;
    };
    /**
     * `verbose: true`: what Sandpool runs inside says more.
     */
    envd?: {
      verbose?: boolean;
    };
    /**
     * Mounted into every container.
     *
     * @maxItems 16
     */
    volumes?: {
      /**
       * One of `GET /volumes`.
       */
      claimName: string;
      /**
       * Where it stands inside.
       */
      mountPath: string;
      /**
       * A folder of it instead of the whole: a relative path without `..`. A missing one is made.
       */
      subPath?: string;
      readOnly?: boolean;
    }[];
    /**
     * Of the members that say nothing of it themselves.
     */
    updateStrategy?: {
      /**
       * Whether changes reach idle instances by themselves; else they wait for sync-template.
       */
      autoUpdate?: boolean;
      /**
       * How many of the unclaimed instances that there should be a rollout may leave away, starting or unavailable at a time; at least 1.
       */
      maxUnavailable?: string;
    };
  };
  labels: {
    [k: string]: string;
  };
  annotations: {
    [k: string]: string;
  };
}
export interface EnvPage {
  items: Env[];
  /**
   * How many there are in all, exactly.
   */
  total: number;
  /**
   * As asked.
   */
  limit: number;
  /**
   * As asked.
   */
  offset: number;
}
export interface ReplaceEnvBody {
  /**
   * Must be what it is.
   */
  name?: string;
  /**
   * Must be what it is.
   */
  mode?: 'WarmPool';
  /**
   * `team`: every user of the owner's team sees it and claims from it, under their own key and quota; only the owner and admins change it. `user`: it is the owner's alone. The default is `user`.
   */
  access?: 'user' | 'team';
  templateRef: {
    /**
     * One of the templates.
     */
    name: string;
    /**
     * Pins the env to this version; left out it follows the template.
     */
    version?: string;
  };
  /**
   * What differs from the template. {} where it is left out.
   */
  overrides?: {
    /**
     * Instead of the template's, of the first container.
     */
    image?: string;
    /**
     * `PoolDefaultImage`: new instances take the template's image, whatever `image` says.
     */
    podCreationImagePolicy?: 'PoolDefaultImage' | 'EnvOverrideImage';
    defaultStartupTimeout?: string;
    /**
     * Of sandboxes whose claim names none.
     */
    defaultIdleTimeout?: string;
    /**
     * Answered; not heeded in requests.
     */
    imagePullSecretConfigured?: boolean;
    /**
     * `enabled: false`: endpoints are not published.
     */
    gateway?: {
      enabled?: boolean;
    };
    /**
     * `verbose: true`: what Sandpool runs inside says more.
     */
    envd?: {
      verbose?: boolean;
    };
    /**
     * Mounted into every container.
     *
     * @maxItems 16
     */
    volumes?: {
      /**
       * One of `GET /volumes`.
       */
      claimName: string;
      /**
       * Where it stands inside.
       */
      mountPath: string;
      /**
       * A folder of it instead of the whole: a relative path without `..`. A missing one is made.
       */
      subPath?: string;
      readOnly?: boolean;
    }[];
    /**
     * Of the members that say nothing of it themselves.
     */
    updateStrategy?: {
      /**
       * Whether changes reach idle instances by themselves; else they wait for sync-template.
       */
      autoUpdate?: boolean;
      /**
       * How many of the unclaimed instances that there should be a rollout may leave away, starting or unavailable at a time; at least 1.
       */
      maxUnavailable?: string;
    };
    /**
     * Write-only; replaces what was given before.
     */
    imagePullSecret?: {
      /**
       * @maxItems 16
       */
      registries: {
        registry: string;
        username: string;
        password: string;
      }[];
    };
  };
  /**
   * At most 64. Data, never interpreted. {} where it is left out.
   */
  labels?: {
    [k: string]: string;
  };
  /**
   * At most 64. Data, never interpreted. {} where it is left out.
   */
  annotations?: {
    [k: string]: string;
  };
}
export interface PatchEnvBody {
  overrides?: {
    image?: string | null;
    podCreationImagePolicy?: ('PoolDefaultImage' | 'EnvOverrideImage') | null;
    defaultStartupTimeout?: string | null;
    defaultIdleTimeout?: string | null;
    gateway?: {
      enabled?: boolean | null;
    } | null;
    envd?: {
      verbose?: boolean | null;
    } | null;
    volumes?:
      | {
          /**
           * One of `GET /volumes`.
           */
          claimName: string;
          /**
           * Where it stands inside.
           */
          mountPath: string;
          /**
           * A folder of it instead of the whole: a relative path without `..`. A missing one is made.
           */
          subPath?: string;
          readOnly?: boolean;
        }[]
      | null;
    updateStrategy?: {
      autoUpdate?: boolean | null;
      maxUnavailable?: string | null;
    } | null;
    /**
     * Answered; not heeded in requests.
     */
    imagePullSecretConfigured?: boolean | null;
    /**
     * Write-only; null removes what was given before.
     */
    imagePullSecret?: {
      /**
       * @maxItems 16
       */
      registries: {
        registry: string;
        username: string;
        password: string;
      }[];
    } | null;
  } | null;
  labels?: {
    [k: string]: string | null;
  } | null;
  annotations?: {
    [k: string]: string | null;
  } | null;
  envDocs?: string | null;
  access?: ('user' | 'team') | null;
}
export interface EnvDeletion {
  name: string;
  namespace: string;
  status: 'Deleting';
}
export interface NarrowEnvEnvelope {
  env: NarrowEnv;
}
/**
 * An env in an older, narrower shape.
 */
export interface NarrowEnv {
  name: string;
  namespace: string;
  labels: {
    [k: string]: string;
  };
  team: string;
  user: string;
  createdAt: string;
  envDocs?: string;
  /**
   * The template's.
   */
  poolSizing?: 'billed' | 'free';
  spec: {
    /**
     * Left out where it is `user`.
     */
    access?: 'user' | 'team';
    templateRef: {
      /**
       * One of the templates.
       */
      name: string;
      /**
       * Pins the env to this version; left out it follows the template.
       */
      version?: string;
    };
    mode: 'WarmPool';
    /**
     * The template's: the size of members that name none.
     */
    defaults: {
      instanceType?: string;
      multiplier?: number;
    };
    clusters: {
      clusterID: string;
      members: {
        name: string;
        config: {
          /**
           * At most 64. Data, never interpreted.
           */
          labels?: {
            [k: string]: string;
          };
          /**
           * At most 64. Data, never interpreted.
           */
          annotations?: {
            [k: string]: string;
          };
          /**
           * One of `GET /instancetypes`: the size of the first container.
           */
          instanceType?: string;
          /**
           * Of the instance type; at most its `maxMultiplier`.
           */
          multiplier?: number;
          /**
           * Of the first container; counts before the instance type. A request alone leaves the limit as it is, or raises it to itself.
           */
          inlineResources?: {
            requests?: {
              cpu?: string;
              memory?: string;
            };
            limits?: {
              cpu?: string;
              memory?: string;
            };
          };
          /**
           * The autoscaling group that sizes it; of a new member a group of its own name where it is left out.
           */
          scalingGroup?: string;
          /**
           * The member's own bounds, beside those of its group.
           */
          minReplicas?: number;
          /**
           * The member's own bounds, beside those of its group.
           */
          maxReplicas?: number;
          /**
           * Of the members of a group the higher one grows first and shrinks last; 0 where unset.
           */
          priority?: number;
          /**
           * The higher one grows first; `priority` where unset.
           */
          scaleUpPriority?: number;
          /**
           * The higher one shrinks first; minus `priority` where unset.
           */
          scaleDownPriority?: number;
        };
      }[];
    }[];
    autoscaling: {
      groups: AutoscalingGroup[];
    };
    overrides: {
      /**
       * Instead of the template's, of the first container.
       */
      image?: string;
      /**
       * `PoolDefaultImage`: new instances take the template's image, whatever `image` says.
       */
      podCreationImagePolicy?: 'PoolDefaultImage' | 'EnvOverrideImage';
      defaultStartupTimeout?: string;
      /**
       * Of sandboxes whose claim names none.
       */
      defaultIdleTimeout?: string;
      /**
       * Answered; not heeded in requests.
       */
      imagePullSecretConfigured?: boolean;
    };
  };
  status: {
    conditions: EnvCondition[];
    clusters: {
      clusterID: string;
      isLocal: boolean;
      /**
       * When it was so.
       */
      lastSnapshotTime: string;
      observedMembers: NarrowObservedMember[];
    }[];
    scalingGroups: {
      name: string;
      totalIdle: number;
      totalRunning: number;
      totalDesired: number;
    }[];
    memberCount: number;
    desiredReplicas: number;
    runningReplicas: number;
    idleReplicas: number;
  };
}
export interface NarrowObservedMember {
  name: string;
  instanceType?: string;
  multiplier?: number;
  state: 'Pending' | 'Active' | 'Saturated' | 'Draining' | 'Unreachable' | 'Error';
  idleCount: number;
  runningCount: number;
  desiredReplicas: number;
  /**
   * Starting, idle, unavailable and running.
   */
  currentReplicas: number;
  scalingGroup?: string;
  autoscalingEnabled: boolean;
  templateVersion?: string;
}
export interface AddMemberBody {
  /**
   * Of the member and its pool; generated where it is left out.
   */
  name?: string;
  /**
   * One of `GET /clusters`; the local one where it is left out.
   */
  clusterID?: string;
  /**
   * At most 64. Data, never interpreted.
   */
  labels?: {
    [k: string]: string;
  };
  /**
   * At most 64. Data, never interpreted.
   */
  annotations?: {
    [k: string]: string;
  };
  /**
   * One of `GET /instancetypes`: the size of the first container.
   */
  instanceType?: string;
  /**
   * Of the instance type; at most its `maxMultiplier`.
   */
  multiplier?: number;
  /**
   * Of the first container; counts before the instance type. A request alone leaves the limit as it is, or raises it to itself.
   */
  inlineResources?: {
    requests?: {
      cpu?: string;
      memory?: string;
    };
    limits?: {
      cpu?: string;
      memory?: string;
    };
  };
  /**
   * The autoscaling group that sizes it; of a new member a group of its own name where it is left out.
   */
  scalingGroup?: string;
  /**
   * The member's own bounds, beside those of its group.
   */
  minReplicas?: number;
  /**
   * The member's own bounds, beside those of its group.
   */
  maxReplicas?: number;
  /**
   * Of the members of a group the higher one grows first and shrinks last; 0 where unset.
   */
  priority?: number;
  /**
   * The higher one grows first; `priority` where unset.
   */
  scaleUpPriority?: number;
  /**
   * The higher one shrinks first; minus `priority` where unset.
   */
  scaleDownPriority?: number;
  /**
   * Counts before that of the env's overrides.
   */
  updateStrategy?: {
    /**
     * Whether changes reach idle instances by themselves; else they wait for sync-template.
     */
    autoUpdate?: boolean;
    /**
     * How many of the unclaimed instances that there should be a rollout may leave away, starting or unavailable at a time; at least 1.
     */
    maxUnavailable?: string;
  };
  /**
   * What its pool is made with; of a new member 1, or what its bounds have nearest to it.
   */
  replicas?: number;
}
export interface MemberEnvelope {
  template: Pool;
  editable: EditableMember;
}
export interface EditableMember {
  name: string;
  clusterID: string;
  replicas: number;
  /**
   * At most 64. Data, never interpreted.
   */
  labels?: {
    [k: string]: string;
  };
  /**
   * At most 64. Data, never interpreted.
   */
  annotations?: {
    [k: string]: string;
  };
  /**
   * One of `GET /instancetypes`: the size of the first container.
   */
  instanceType?: string;
  /**
   * Of the instance type; at most its `maxMultiplier`.
   */
  multiplier?: number;
  /**
   * Of the first container; counts before the instance type. A request alone leaves the limit as it is, or raises it to itself.
   */
  inlineResources?: {
    requests?: {
      cpu?: string;
      memory?: string;
    };
    limits?: {
      cpu?: string;
      memory?: string;
    };
  };
  /**
   * The autoscaling group that sizes it; of a new member a group of its own name where it is left out.
   */
  scalingGroup?: string;
  /**
   * The member's own bounds, beside those of its group.
   */
  minReplicas?: number;
  /**
   * The member's own bounds, beside those of its group.
   */
  maxReplicas?: number;
  /**
   * Of the members of a group the higher one grows first and shrinks last; 0 where unset.
   */
  priority?: number;
  /**
   * The higher one grows first; `priority` where unset.
   */
  scaleUpPriority?: number;
  /**
   * The higher one shrinks first; minus `priority` where unset.
   */
  scaleDownPriority?: number;
  /**
   * Counts before that of the env's overrides.
   */
  updateStrategy?: {
    /**
     * Whether changes reach idle instances by themselves; else they wait for sync-template.
     */
    autoUpdate?: boolean;
    /**
     * How many of the unclaimed instances that there should be a rollout may leave away, starting or unavailable at a time; at least 1.
     */
    maxUnavailable?: string;
  };
}
export interface MemberList {
  items: Pool[];
  total: number;
}
export interface UpdateMemberBody {
  /**
   * At most 64. Data, never interpreted.
   */
  labels?: {
    [k: string]: string;
  };
  /**
   * At most 64. Data, never interpreted.
   */
  annotations?: {
    [k: string]: string;
  };
  /**
   * One of `GET /instancetypes`: the size of the first container.
   */
  instanceType?: string;
  /**
   * Of the instance type; at most its `maxMultiplier`.
   */
  multiplier?: number;
  /**
   * Of the first container; counts before the instance type. A request alone leaves the limit as it is, or raises it to itself.
   */
  inlineResources?: {
    requests?: {
      cpu?: string;
      memory?: string;
    };
    limits?: {
      cpu?: string;
      memory?: string;
    };
  };
  /**
   * The autoscaling group that sizes it; of a new member a group of its own name where it is left out.
   */
  scalingGroup?: string;
  /**
   * The member's own bounds, beside those of its group.
   */
  minReplicas?: number;
  /**
   * The member's own bounds, beside those of its group.
   */
  maxReplicas?: number;
  /**
   * Of the members of a group the higher one grows first and shrinks last; 0 where unset.
   */
  priority?: number;
  /**
   * The higher one grows first; `priority` where unset.
   */
  scaleUpPriority?: number;
  /**
   * The higher one shrinks first; minus `priority` where unset.
   */
  scaleDownPriority?: number;
  /**
   * Counts before that of the env's overrides.
   */
  updateStrategy?: {
    /**
     * Whether changes reach idle instances by themselves; else they wait for sync-template.
     */
    autoUpdate?: boolean;
    /**
     * How many of the unclaimed instances that there should be a rollout may leave away, starting or unavailable at a time; at least 1.
     */
    maxUnavailable?: string;
  };
  /**
   * What its pool is made with; of a new member 1, or what its bounds have nearest to it.
   */
  replicas?: number;
}
export interface AutoscalingGroupList {
  items: AutoscalingGroup[];
  total: number;
}
export interface AutoscalingGroupEnvelope {
  group: AutoscalingGroup;
  editable: EditableAutoscalingGroup;
}
export interface EditableAutoscalingGroup {
  /**
   * Off: its members keep their size, and their pools' `replicas` are yours.
   */
  enabled: boolean;
  /**
   * Over all its members together.
   */
  minReplicas: number;
  /**
   * Over all its members together.
   */
  maxReplicas: number;
  scaleUpPolicy: {
    /**
     * How eagerly it grows.
     */
    mode: 'Conservative' | 'Moderate' | 'Aggressive';
    /**
     * Least time between two scale-ups; what `minReplicas` is short of, and an instance for each claim that waits, is made at once.
     */
    cooldownSeconds: number;
    /**
     * How long too few must have been idle.
     */
    idleThresholdSeconds: number;
    /**
     * With nothing idle it grows where a claim came in this time; 0: always.
     */
    idleZeroQuietWindowSeconds: number;
    /**
     * For how long a member that could not grow is left out.
     */
    saturationCooldownSeconds: number;
  };
  scaleDownPolicy: {
    /**
     * What stayed idle for so long is surplus; 0: it never scales down.
     */
    idleTimeoutSeconds: number;
    /**
     * It goes down to the highest size that it wanted in this time.
     */
    stabilizationSeconds: number;
    /**
     * No scale-down so soon after a scale-up, and no instance younger than this goes.
     */
    protectionWindowSeconds: number;
  };
}
export interface UpdateGroupBody {
  /**
   * Off: its members keep their size, and their pools' `replicas` are yours.
   */
  enabled?: boolean;
  /**
   * Over all its members together.
   */
  minReplicas?: number;
  /**
   * Over all its members together.
   */
  maxReplicas?: number;
  scaleUpPolicy?: {
    /**
     * How eagerly it grows.
     */
    mode?: 'Conservative' | 'Moderate' | 'Aggressive';
    /**
     * Least time between two scale-ups; what `minReplicas` is short of, and an instance for each claim that waits, is made at once.
     */
    cooldownSeconds?: number;
    /**
     * How long too few must have been idle.
     */
    idleThresholdSeconds?: number;
    /**
     * With nothing idle it grows where a claim came in this time; 0: always.
     */
    idleZeroQuietWindowSeconds?: number;
    /**
     * For how long a member that could not grow is left out.
     */
    saturationCooldownSeconds?: number;
  };
  scaleDownPolicy?: {
    /**
     * What stayed idle for so long is surplus; 0: it never scales down.
     */
    idleTimeoutSeconds?: number;
    /**
     * It goes down to the highest size that it wanted in this time.
     */
    stabilizationSeconds?: number;
    /**
     * No scale-down so soon after a scale-up, and no instance younger than this goes.
     */
    protectionWindowSeconds?: number;
  };
}
export interface AutoscalingGroupDeletion {
  name: string;
  status: 'deleted';
}
export interface ScalingDecisionList {
  items: ScalingDecision[];
  total: number;
}
export interface ScalingDecision {
  /**
   * Grows from decision to decision.
   */
  id: number;
  at: string;
  /**
   * Claims, too many idle for too long, bounds that were kept, or starts that failed.
   */
  cause: 'demand' | 'surplus' | 'limits' | 'failure';
  /**
   * Over all members.
   */
  seen: {
    desired: number;
    running: number;
    idle: number;
    /**
     * What should be there and is not, as far as it comes.
     */
    starting: number;
    /**
     * Claims that waited, and users refused and not served since.
     */
    pendingRequests: number;
  };
  /**
   * What there should be by demand; limits not regarded.
   */
  wanted: number;
  /**
   * Empty: the group could not grow; told once for each reason.
   */
  changes: {
    member: string;
    from: number;
    to: number;
    /**
     * `overtaken`: its size was another one meanwhile, and was left alone.
     */
    outcome: 'done' | 'overtaken' | 'refused';
    refusedFor?: 'quota' | 'unschedulable' | 'start failures';
  }[];
  /**
   * In words.
   */
  reason: string;
  /**
   * Why it is not more.
   */
  limitedBy: string[];
}
export interface TemplatePage {
  items: Template[];
  /**
   * How many there are in all, exactly.
   */
  total: number;
  /**
   * As asked.
   */
  limit: number;
  /**
   * As asked.
   */
  offset: number;
}
export interface Template {
  name: string;
  /**
   * A whole number, moved by each change.
   */
  version: string;
  description?: string;
  createdAt: string;
  /**
   * Of an instance of it.
   */
  cpu: string;
  /**
   * Of an instance of it.
   */
  memory: string;
  /**
   * It comes from a file of `templatesDir`; left out where it was made here.
   */
  syncSource?: 'global';
  /**
   * For people, at length.
   */
  docs?: string;
  /**
   * The template as a manifest.
   */
  crdYaml: string;
  poolSizing?: 'billed' | 'free';
}
export interface TemplateEnvelope {
  template: Template;
}
export interface CreateTemplateBody {
  /**
   * A template as JSON, at most 256 KiB; unknown fields are refused.
   */
  crdJson: string;
}
export interface UpdateTemplateBody {
  /**
   * The whole template; `description`, `docs` and `poolSizing` stay where it names none.
   */
  crdJson?: string;
  /**
   * The empty text removes it; so with `docs`.
   */
  description?: string;
  docs?: string;
  poolSizing?: 'billed' | 'free';
}
export interface TemplateDeletion {
  name: string;
  status: 'deleted';
}
export interface CreateApiKeyBody {
  /**
   * A DNS label, unique in the namespace; else one is made up.
   */
  name?: string;
  description?: string;
  /**
   * At most a year ahead (`keys.maxLifetime`), and no later than the key that asks ends. Left out: 90 days (`keys.defaultLifetime`), or when that key ends.
   */
  expiresAt?: string;
  /**
   * Admins alone, as in `POST /admin/api-keys`.
   */
  team?: string;
  /**
   * The same.
   */
  user?: string;
  /**
   * The same.
   */
  role?: 'user' | 'admin';
  /**
   * For the policy of approvals: rules may hold what it asks. A key that a gated key makes is gated in any case.
   */
  gated?: true;
}
export interface IssuedApiKey {
  /**
   * The key itself: a secret.
   */
  apiKey: string;
  /**
   * Its middle part. Logs show it.
   */
  keyId: string;
  /**
   * `{namespace}/{name}`.
   */
  name: string;
  user: string;
  team: string;
  role: 'user' | 'admin';
  description: string;
  /**
   * The `keyId` of the key that made it, which may be gone by now. Left out: the daemon made it, or a version before this field.
   */
  createdBy?: string;
  /**
   * Rules of the policy may hold what it asks.
   */
  gated?: true;
  issuedAt: string;
  expiresAt: string;
}
export interface ApiKeyPage {
  items: ApiKey[];
  /**
   * How many there are in all, exactly.
   */
  total: number;
  /**
   * As asked.
   */
  limit: number;
  /**
   * As asked.
   */
  offset: number;
}
export interface ApiKey {
  /**
   * Its middle part. Logs show it.
   */
  keyId: string;
  /**
   * `{namespace}/{name}`.
   */
  name: string;
  user: string;
  team: string;
  role: 'user' | 'admin';
  description: string;
  /**
   * The `keyId` of the key that made it, which may be gone by now. Left out: the daemon made it, or a version before this field.
   */
  createdBy?: string;
  /**
   * Rules of the policy may hold what it asks.
   */
  gated?: true;
  issuedAt: string;
  expiresAt: string;
}
export interface ApiKeyDeletion {
  keyId: string;
  status: 'deleted';
  /**
   * With `cascade`: how many keys went, this one too.
   */
  revoked?: number;
}
export interface CreateApiKeyForTenantBody {
  /**
   * A DNS label, unique in the namespace; else one is made up.
   */
  name?: string;
  description?: string;
  /**
   * As in `POST /api-keys`.
   */
  expiresAt?: string;
  /**
   * A DNS label. The namespace follows from it (`namespacePattern`).
   */
  team: string;
  /**
   * A DNS label.
   */
  user: string;
  /**
   * Left out: `"user"`.
   */
  role?: 'user' | 'admin';
  /**
   * For the policy of approvals: rules may hold what it asks. A key that a gated key makes is gated in any case.
   */
  gated?: true;
}
export interface ApiKeysDeletion {
  team: string;
  user: string;
  status: 'deleted';
  /**
   * How many keys went.
   */
  revoked: number;
}
export interface ApiKeyPromotion {
  keyId: string;
  status: 'promoted';
}
export interface QuotaList {
  items: Quota[];
  total: number;
}
export interface Quota {
  /**
   * Whose: `{team}/{user}`.
   */
  name: string;
  /**
   * `cpu` and `memory` are told where there is a limit of them.
   */
  resource: 'sandboxes' | 'pools' | 'replicas' | 'cpu' | 'memory';
  /**
   * Of `cpu` in cores, of `memory` in bytes; so are the others.
   */
  limit: number;
  /**
   * With what requests under way have reserved. May be more than `limit`, where that was lowered.
   */
  used: number;
  /**
   * How many more will be granted.
   */
  remaining: number;
}
export interface SetQuotasOfBody {
  /**
   * How many they may have claimed at one time.
   */
  sandboxes?: number;
  /**
   * How many they may own.
   */
  pools?: number;
  /**
   * How many they may ask for, over all their pools.
   */
  replicas?: number;
  /**
   * How many cores all instances that their pools ask for may have: a quantity such as `"16"` or `"500m"`, or a number of cores. `"none"`: what the configuration says.
   */
  cpu?: number | string;
  /**
   * The same for memory: a quantity such as `"64Gi"`, or a number of bytes.
   */
  memory?: number | string;
}
export interface InstanceTypeList {
  /**
   * How many there are.
   */
  total: number;
  items: InstanceType[];
}
export interface InstanceType {
  name: string;
  /**
   * For people.
   */
  showName: string;
  description: string;
  /**
   * Of an instance with the multiplier 1.
   */
  baseResources: {
    /**
     * By resource, such as `cpu` and `memory`.
     */
    requests: {
      [k: string]: string;
    };
    /**
     * By resource, such as `cpu` and `memory`.
     */
    limits: {
      [k: string]: string;
    };
  };
  /**
   * The largest multiplier.
   */
  maxMultiplier: number;
  /**
   * Data, never interpreted.
   */
  extensions: {
    [k: string]: string;
  };
}
export interface VolumeList {
  /**
   * How many there are.
   */
  total: number;
  items: Volume[];
}
export interface Volume {
  claimName: string;
  /**
   * For people.
   */
  displayName: string;
  /**
   * A resource quantity; empty where it is not known.
   */
  capacity: string;
  /**
   * Such as `ReadWriteOnce` and `ReadWriteMany`.
   */
  accessModes: string[];
  storageClass: string;
  phase: 'Bound';
}
export interface FeatureGates {
  /**
   * `GET /volumes` has what `overrides.volumes` may mount.
   */
  volumes: boolean;
  /**
   * Pools may name an `instanceType`.
   */
  instanceType: boolean;
  approvals: boolean;
  envs: boolean;
  autoscaling: boolean;
  multiCluster: boolean;
  terminal: boolean;
  exec: boolean;
  /**
   * `PUT /sandboxes/{sandboxId}/state` pauses sandboxes.
   */
  pause: boolean;
  /**
   * `GET /sandboxes/{sandboxId}/files` and what is beside it.
   */
  files: boolean;
  /**
   * `/sandboxes/{sandboxId}/processes` runs processes.
   */
  processes: boolean;
  logs: boolean;
  quotas: boolean;
  compatibleApi: boolean;
  console: boolean;
}
export interface ClusterList {
  /**
   * How many there are.
   */
  total: number;
  items: Cluster[];
}
export interface Cluster {
  /**
   * As it stands before a sandbox's id or a pool's name.
   */
  clusterID: string;
  /**
   * Whether it is the one that answers.
   */
  isLocal: boolean;
  status: 'Connected' | 'Disconnected';
  lastHeartbeat: string;
}
export interface SandboxStatistics {
  statistics: {
    /**
     * The sum of `byStatus`.
     */
    total: number;
    /**
     * A status that nobody has is left out.
     */
    byStatus: {
      [k: string]: number;
    };
    byNamespace: {
      [k: string]: number;
    };
  };
}
export interface ApprovalPage {
  items: Approval[];
  /**
   * How many there are in all, exactly.
   */
  total: number;
  /**
   * As asked.
   */
  limit: number;
  /**
   * As asked.
   */
  offset: number;
}
export interface Approval {
  id: string;
  /**
   * Who asked.
   */
  principal: {
    team: string;
    user: string;
    keyId: string;
  };
  /**
   * The `X-Session-Id` of the request.
   */
  sessionId?: string;
  /**
   * What the request comes to, by its operationId.
   */
  operation: string;
  /**
   * It is never approved for a whole session.
   */
  onceOnly: boolean;
  method: string;
  /**
   * In its one normal form, without `/v1`.
   */
  path: string;
  /**
   * Sorted.
   */
  query?: string;
  /**
   * Of what the path names.
   */
  namespace: string;
  /**
   * Those that a repetition must share.
   */
  headers: {
    [k: string]: string;
  };
  summary: string;
  createdAt: string;
  /**
   * When the pending one, or the grant, ends.
   */
  expiresAt: string;
  status: 'pending' | 'approved' | 'denied' | 'expired' | 'consumed';
  scope?: 'once' | 'session';
  /**
   * The operator.
   */
  decidedBy?: string;
  decidedAt?: string;
  reason?: string;
}
export interface ApprovalInFull {
  id: string;
  /**
   * Who asked.
   */
  principal: {
    team: string;
    user: string;
    keyId: string;
  };
  /**
   * The `X-Session-Id` of the request.
   */
  sessionId?: string;
  /**
   * What the request comes to, by its operationId.
   */
  operation: string;
  /**
   * It is never approved for a whole session.
   */
  onceOnly: boolean;
  method: string;
  /**
   * In its one normal form, without `/v1`.
   */
  path: string;
  /**
   * Sorted.
   */
  query?: string;
  /**
   * Of what the path names.
   */
  namespace: string;
  /**
   * Those that a repetition must share.
   */
  headers: {
    [k: string]: string;
  };
  summary: string;
  createdAt: string;
  /**
   * When the pending one, or the grant, ends.
   */
  expiresAt: string;
  status: 'pending' | 'approved' | 'denied' | 'expired' | 'consumed';
  scope?: 'once' | 'session';
  /**
   * The operator.
   */
  decidedBy?: string;
  decidedAt?: string;
  reason?: string;
  /**
   * What was sent, exactly; to operators’ console sessions alone, and while it may still be needed.
   */
  body?: string;
  /**
   * The same, where it is no UTF-8 text.
   */
  bodyBase64?: string;
}
export interface DecideApprovalBody {
  decision: 'approve' | 'deny';
  /**
   * `once`: for one effect. `session`: for the same operation with that key and `X-Session-Id`, for 8 hours at most; not where `onceOnly`. Left out: `once`.
   */
  scope?: 'once' | 'session';
  /**
   * For who asked.
   */
  reason?: string;
}
export interface AuditPage {
  /**
   * The newest first.
   */
  items: AuditRecord[];
  /**
   * There may be older ones: ask with it as `cursor`.
   */
  nextCursor?: string;
}
export interface AuditRecord {
  /**
   * Its number in the chain of its replica's folder.
   */
  seq: number;
  time: string;
  replica: string;
  /**
   * `write`; `begin` and `end` of a run; `lost`: lines that could not be written; `read` and `open`: so many reads by an admin, or requests to an endpoint, of one minute; `omitted`: further ones of a key, or without a good one. There may be more some day.
   */
  kind: string;
  requestId?: string;
  /**
   * Not over the API: `control-socket`.
   */
  via?: string;
  /**
   * Who: left out, as what follows, where there was no good key.
   */
  namespace?: string;
  team?: string;
  user?: string;
  role?: string;
  keyId?: string;
  /**
   * The operationId.
   */
  operation?: string;
  /**
   * What stood in the path.
   */
  params?: {
    [k: string]: string;
  };
  /**
   * Names and ids of what it is about, of the body and the answer.
   */
  target?: {
    [k: string]: string;
  };
  status?: number;
  errorCode?: string;
  /**
   * Of an `Idempotency-Key`: the answer was given before, and nothing done.
   */
  replayed?: boolean;
  /**
   * With `lost`, `omitted`, `read` and `open`.
   */
  count?: number;
  /**
   * With `lost` and `omitted`.
   */
  why?: string;
  /**
   * With `lost`.
   */
  since?: string;
  /**
   * With `begin`, how the run before ended: `end`, `crash`, or `missing` where lines are gone.
   */
  after?: string;
  /**
   * How many those are.
   */
  missing?: number;
  /**
   * With `begin`: of the machine.
   */
  boot?: string;
  /**
   * With `begin`.
   */
  version?: string;
  /**
   * The same.
   */
  pid?: number;
  /**
   * Hash of the line before it.
   */
  prev: string;
  /**
   * Its own: SHA-256.
   */
  hash: string;
}
export interface ShardReport {
  /**
   * Who answers.
   */
  replica: string;
  /**
   * The live ones, by name.
   */
  replicas: string[];
  /**
   * All of them.
   */
  shards: {
    /**
     * Its number, from 0.
     */
    shard: number;
    /**
     * Whether the answering replica leads it: it holds the lease, and its mirror has caught up.
     */
    leading: boolean;
    /**
     * Who holds its lease, as the answering replica last heard; left out while nobody does.
     */
    replica?: string;
  }[];
}
export interface QueuesReport {
  /**
   * Of which replica this is.
   */
  replica: string;
  /**
   * That it leads.
   */
  shards: {
    shard: number;
    /**
     * Moves each time the lease is won.
     */
    epoch: number;
  }[];
  /**
   * What state machines have asked for.
   */
  outboxes: {
    sandboxesAndPools: {
      /**
       * Asked for, and not begun.
       */
      queued: number;
      /**
       * Begun and not answered, by what was asked for.
       */
      running: {
        [k: string]: {
          count: number;
          /**
           * How long the oldest of them has been under way, in milliseconds.
           */
          oldestMs: number;
        };
      };
    };
    members: {
      /**
       * Asked for, and not begun.
       */
      queued: number;
      /**
       * Begun and not answered, by what was asked for.
       */
      running: {
        [k: string]: {
          count: number;
          /**
           * How long the oldest of them has been under way, in milliseconds.
           */
          oldestMs: number;
        };
      };
    };
    groups: {
      /**
       * Asked for, and not begun.
       */
      queued: number;
      /**
       * Begun and not answered, by what was asked for.
       */
      running: {
        [k: string]: {
          count: number;
          /**
           * How long the oldest of them has been under way, in milliseconds.
           */
          oldestMs: number;
        };
      };
    };
  };
  /**
   * What sandboxes and pools wait for.
   */
  deadlines: {
    count: number;
    /**
     * When the first one is due.
     */
    next?: string;
  };
  /**
   * Claims of this replica that wait for an instance.
   */
  claimsWaiting: number;
  actors: {
    sandboxes: number;
    pools: number;
    /**
     * How many threw, and were made again.
     */
    rebuilt: number;
  };
  /**
   * How it stands with those who are told of approvals; left out where nobody is.
   */
  webhooks?: {
    /**
     * Its origin alone.
     */
    address: string;
    /**
     * Messages that it did not take yet.
     */
    waiting: number;
    /**
     * The last that were given up, the newest first.
     */
    deadLetters: {
      /**
       * Of the message.
       */
      id: string;
      event: string;
      approvalId: string;
      /**
       * When it was given up.
       */
      at: string;
      attempts: number;
      /**
       * What the last attempt met with.
       */
      problem: string;
    }[];
  }[];
}
export interface DriverReport {
  /**
   * Of which replica this is.
   */
  replica: string;
  /**
   * As `GET /readyz` shows it.
   */
  isolation: string;
  warnings: string[];
  /**
   * What keeps it from its work now.
   */
  problems: string[];
  /**
   * How many of what it has at hand or under way. Names may come and go.
   */
  work: {
    [k: string]: number;
  };
}
export interface ReflectorsReport {
  /**
   * Of which replica this is.
   */
  replica: string;
  /**
   * None where nobody else writes: on the embedded daemon.
   */
  reflectors: {
    /**
     * What it mirrors.
     */
    name: string;
    objects: number;
    /**
     * All changes up to it were taken in. Empty before the first list.
     */
    revision: string;
    /**
     * Since the API server last said something about it, in milliseconds.
     */
    silentMs?: number;
    /**
     * Why it can't be relied on.
     */
    stale?: string;
    lists: number;
    /**
     * Lists after the first.
     */
    relists: number;
    /**
     * Watches that ended otherwise than by their time.
     */
    restarts: number;
    events: number;
    /**
     * Objects that could not be read, changes that could not be taken in.
     */
    mishaps: number;
  }[];
}
export interface ActorPage {
  items: ActorSummary[];
  /**
   * The `cursor` of the page after this one. Left out: there is none. A page may be shorter than its limit, or empty, and not be the last.
   */
  next?: string;
  /**
   * Who answers: what it hosts is shown.
   */
  replica: string;
}
export interface ActorSummary {
  kind: 'sandbox' | 'pool' | 'member' | 'group' | 'approval';
  /**
   * Names it among its kind.
   */
  key: string;
  /**
   * As people call it.
   */
  name: string;
  /**
   * As `stopping.waiting`; of several regions each, with spaces between them.
   */
  state: string;
  /**
   * Left out where that is forgotten.
   */
  since?: string;
  /**
   * As the API shows it: a sandbox's status, a pool's phase.
   */
  status?: string;
}
export interface ActorReport {
  kind: 'sandbox' | 'pool' | 'member' | 'group' | 'approval';
  /**
   * Names it among its kind.
   */
  key: string;
  /**
   * As people call it.
   */
  name: string;
  /**
   * As `stopping.waiting`; of several regions each, with spaces between them.
   */
  state: string;
  /**
   * Left out where that is forgotten.
   */
  since?: string;
  /**
   * As the API shows it: a sandbox's status, a pool's phase.
   */
  status?: string;
  /**
   * Why it stands where it stands, in plain words.
   */
  why: string[];
  leader: {
    shard: number;
    /**
     * Who holds the lease of its shard, as far as is known.
     */
    replica?: string;
    /**
     * Of that lease, where the replica that is shown holds it.
     */
    epoch?: number;
  };
  /**
   * What the machine knows. Bounded, and without secrets: definitions, variables and passwords are left out.
   */
  context: {
    [k: string]: unknown;
  };
  /**
   * What it waits for, and until when.
   */
  deadlines: {
    what: string;
    time: string;
    /**
     * Negative: it is late.
     */
    inMs: number;
  }[];
  /**
   * The last 50, the oldest first.
   */
  transitions: ActorTransition[];
  /**
   * What it asked for, and nobody has answered yet.
   */
  pending: {
    intent: string;
    /**
     * Since when, in milliseconds.
     */
    forMs: number;
    /**
     * Of the lease under which it is carried out; left out where a request waits for it.
     */
    epoch?: number;
  }[];
  record: {
    /**
     * As the actor knows it. Bounded, and without secrets: definitions, variables and passwords are left out.
     */
    known: {
      [k: string]: unknown;
    };
    /**
     * As it stands in the store at this moment. Left out: there is none, or `unread`.
     */
    stored?: {
      [k: string]: unknown;
    };
    /**
     * Why it could not be read.
     */
    unread?: string;
    /**
     * What the two do not say alike. A mirror may be behind for a moment.
     */
    differs: {
      field: string;
      actor: unknown;
      record: unknown;
    }[];
  };
  seenBy: {
    /**
     * Whose view this is.
     */
    replica: string;
    /**
     * Why it is not that of whoever leads the actor, or of the replica that was named.
     */
    note?: string;
  };
}
export interface ActorTransition {
  /**
   * Counts the actor's transitions, from 1.
   */
  number: number;
  time: string;
  /**
   * What the machine was sent.
   */
  event: string;
  /**
   * What brought that, where it says so.
   */
  cause?: string;
  /**
   * Left out of the first: it was made then.
   */
  from?: string;
  to: string;
  /**
   * How long it had stood in `from`, in milliseconds.
   */
  stoodMs: number;
}
export interface MachineReport {
  kind: 'sandbox' | 'pool' | 'member' | 'group' | 'approval';
  /**
   * How many this replica hosts.
   */
  actors: number;
  states: {
    /**
     * With dots; the machine itself is the empty one.
     */
    path: string;
    type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
    /**
     * Where it begins.
     */
    initial?: string;
    /**
     * How many actors stand in it, or inside it.
     */
    count: number;
    onEntry: string[];
    /**
     * Of several for one event the first is taken whose guard holds.
     */
    ways: {
      /**
       * Left out: it is taken at once.
       */
      event?: string;
      guard?: string;
      /**
       * Left out: it stays.
       */
      to?: string;
      actions: string[];
    }[];
  }[];
}
export interface LogLevelReport {
  /**
   * Whose log this is: that of who answers.
   */
  replica: string;
  /**
   * The least that is logged now.
   */
  level: 'trace' | 'debug' | 'info' | 'warn' | 'error';
  /**
   * That of the settings.
   */
  configured: 'trace' | 'debug' | 'info' | 'warn' | 'error';
  /**
   * Then it is `configured` again.
   */
  until?: string;
}
export interface SetLogLevelBody {
  level: 'trace' | 'debug' | 'info' | 'warn' | 'error';
  /**
   * For so long; then it is that of the settings again. Left out: until the daemon starts again.
   */
  forSeconds?: number;
}

export const OPERATIONS = {
  getHealth: { method: 'GET', path: '/healthz' },
  getReadiness: { method: 'GET', path: '/readyz' },
  claimSandbox: { method: 'POST', path: '/sandboxes' },
  listSandboxes: { method: 'GET', path: '/sandboxes' },
  getSandbox: { method: 'GET', path: '/sandboxes/{sandboxId}' },
  deleteSandbox: { method: 'DELETE', path: '/sandboxes/{sandboxId}' },
  isReady: { method: 'GET', path: '/sandboxes/{sandboxId}/is_ready' },
  execInSandbox: { method: 'POST', path: '/sandboxes/{sandboxId}/exec' },
  createExecToken: { method: 'POST', path: '/sandboxes/{sandboxId}/exec-token' },
  setSandboxState: { method: 'PUT', path: '/sandboxes/{sandboxId}/state' },
  setIdleTimeout: { method: 'PUT', path: '/sandboxes/{sandboxId}/idle-timeout' },
  getSandboxLogs: { method: 'GET', path: '/sandboxes/{sandboxId}/logs' },
  startProcess: { method: 'POST', path: '/sandboxes/{sandboxId}/processes' },
  listProcesses: { method: 'GET', path: '/sandboxes/{sandboxId}/processes' },
  getProcess: { method: 'GET', path: '/sandboxes/{sandboxId}/processes/{processId}' },
  deleteProcess: { method: 'DELETE', path: '/sandboxes/{sandboxId}/processes/{processId}' },
  followProcess: { method: 'GET', path: '/sandboxes/{sandboxId}/processes/{processId}/output' },
  writeToProcess: { method: 'POST', path: '/sandboxes/{sandboxId}/processes/{processId}/stdin' },
  signalProcess: { method: 'POST', path: '/sandboxes/{sandboxId}/processes/{processId}/signal' },
  resizeProcess: { method: 'POST', path: '/sandboxes/{sandboxId}/processes/{processId}/resize' },
  readFile: { method: 'GET', path: '/sandboxes/{sandboxId}/files' },
  writeFile: { method: 'PUT', path: '/sandboxes/{sandboxId}/files' },
  removeFile: { method: 'DELETE', path: '/sandboxes/{sandboxId}/files' },
  listFiles: { method: 'GET', path: '/sandboxes/{sandboxId}/files/list' },
  moveFile: { method: 'POST', path: '/sandboxes/{sandboxId}/files/move' },
  makeFolder: { method: 'POST', path: '/sandboxes/{sandboxId}/files/mkdir' },
  watchFiles: { method: 'GET', path: '/sandboxes/{sandboxId}/files/watch' },
  listSandboxEvents: { method: 'GET', path: '/sandboxes/{sandboxId}/events' },
  listPoolEvents: { method: 'GET', path: '/sandboxpools/{name}/events' },
  followEvents: { method: 'GET', path: '/events' },
  createPool: { method: 'POST', path: '/sandboxpools' },
  listPools: { method: 'GET', path: '/sandboxpools' },
  getPool: { method: 'GET', path: '/sandboxpools/{name}' },
  updatePool: { method: 'PUT', path: '/sandboxpools/{name}' },
  deletePool: { method: 'DELETE', path: '/sandboxpools/{name}' },
  syncPool: { method: 'POST', path: '/sandboxpools/{name}/sync-template' },
  previewPoolSync: { method: 'POST', path: '/sandboxpools/{name}/sync-template/preview' },
  createEnv: { method: 'POST', path: '/envs' },
  listEnvs: { method: 'GET', path: '/envs' },
  getEnv: { method: 'GET', path: '/envs/{name}' },
  replaceEnv: { method: 'PUT', path: '/envs/{name}' },
  patchEnv: { method: 'PATCH', path: '/envs/{name}' },
  deleteEnv: { method: 'DELETE', path: '/envs/{name}' },
  syncEnv: { method: 'POST', path: '/envs/{name}/sync-template' },
  addMember: { method: 'POST', path: '/envs/{name}/sandboxpools' },
  listMembers: { method: 'GET', path: '/envs/{name}/sandboxpools' },
  updateMember: { method: 'PUT', path: '/envs/{name}/sandboxpools/{pool}' },
  deleteMember: { method: 'DELETE', path: '/envs/{name}/sandboxpools/{pool}' },
  listGroups: { method: 'GET', path: '/envs/{name}/autoscaling/groups' },
  getGroup: { method: 'GET', path: '/envs/{name}/autoscaling/groups/{groupName}' },
  updateGroup: { method: 'PUT', path: '/envs/{name}/autoscaling/groups/{groupName}' },
  deleteGroup: { method: 'DELETE', path: '/envs/{name}/autoscaling/groups/{groupName}' },
  listDecisions: { method: 'GET', path: '/envs/{name}/autoscaling/groups/{groupName}/decisions' },
  listTemplates: { method: 'GET', path: '/sandbox-templates' },
  getTemplate: { method: 'GET', path: '/sandbox-templates/{name}' },
  createTemplate: { method: 'POST', path: '/admin/sandbox-templates' },
  updateTemplate: { method: 'PUT', path: '/admin/sandbox-templates/{name}' },
  deleteTemplate: { method: 'DELETE', path: '/admin/sandbox-templates/{name}' },
  createApiKey: { method: 'POST', path: '/api-keys' },
  listApiKeys: { method: 'GET', path: '/api-keys' },
  deleteApiKey: { method: 'DELETE', path: '/api-keys/{keyId}' },
  createApiKeyForTenant: { method: 'POST', path: '/admin/api-keys' },
  listAllApiKeys: { method: 'GET', path: '/admin/api-keys' },
  deleteApiKeysOf: { method: 'DELETE', path: '/admin/api-keys' },
  deleteApiKeyByName: { method: 'DELETE', path: '/admin/api-keys/{name}' },
  deleteApiKeyByFullName: { method: 'DELETE', path: '/admin/api-keys/{namespace}/{shortName}' },
  promoteApiKey: { method: 'POST', path: '/admin/api-keys/{name}/promote' },
  promoteApiKeyByFullName: { method: 'POST', path: '/admin/api-keys/{namespace}/{shortName}/promote' },
  getQuotas: { method: 'GET', path: '/quotas' },
  getQuotasOf: { method: 'GET', path: '/admin/quotas/{team}/{user}' },
  setQuotasOf: { method: 'PUT', path: '/admin/quotas/{team}/{user}' },
  listInstanceTypes: { method: 'GET', path: '/instancetypes' },
  listVolumes: { method: 'GET', path: '/volumes' },
  getFeatureGates: { method: 'GET', path: '/feature-gates' },
  listClusters: { method: 'GET', path: '/clusters' },
  getSandboxStatistics: { method: 'GET', path: '/admin/statistics/sandboxes' },
  listApprovals: { method: 'GET', path: '/approvals' },
  getApproval: { method: 'GET', path: '/approvals/{approvalId}' },
  decideApproval: { method: 'POST', path: '/approvals/{approvalId}/decision' },
  listAudit: { method: 'GET', path: '/admin/audit' },
  getShards: { method: 'GET', path: '/debug/shards' },
  getQueues: { method: 'GET', path: '/debug/queues' },
  getDriver: { method: 'GET', path: '/debug/driver' },
  getReflectors: { method: 'GET', path: '/debug/reflectors' },
  listActors: { method: 'GET', path: '/debug/actors' },
  getActor: { method: 'GET', path: '/debug/actors/{kind}/{key}' },
  followActor: { method: 'GET', path: '/debug/actors/{kind}/{key}/inspect' },
  rebuildActor: { method: 'POST', path: '/debug/actors/{kind}/{key}/rebuild' },
  getMachine: { method: 'GET', path: '/debug/machines/{kind}' },
  getLogLevel: { method: 'GET', path: '/debug/log-level' },
  setLogLevel: { method: 'PUT', path: '/debug/log-level' },
} as const;
