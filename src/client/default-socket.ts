// The daemon's socket with the systemd units.

export const DEFAULT_SOCKET = '/run/namegate/admin.sock'
