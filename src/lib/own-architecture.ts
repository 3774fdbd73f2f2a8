const NAMES: Readonly<Partial<Record<NodeJS.Architecture, string>>> = { x64: 'amd64', ia32: '386' };

/** This machine's architecture, as OCI images and the labels of Kubernetes' nodes spell it. */
export const ownArchitecture = (): string => NAMES[process.arch] ?? process.arch;
